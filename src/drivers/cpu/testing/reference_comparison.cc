// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/testing/reference_comparison.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "base/format.h"
#include "drivers/cpu/cpu_device.h"
#include "drivers/cpu/microkernels/x86/avx512/qd8_f32_qc8w_gemm.h"
#include "drivers/cpu/microkernels/x86/f32_gemm.h"
#include "drivers/cpu/microkernels/x86/instruction_sets.h"
#include "drivers/cpu/plan/kernel_factory.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "drivers/cpu/platform/kernel_traits.h"
#include "drivers/cpu/weights/xnnpack_panels.h"
#include "hal/cts/guarded_memory.h"
#include "hal/interpreted_model.h"
#include "ops/half.h"
#include "ops/reference/kernels.h"
#include "threads/thread_pool.h"

namespace hearth::cpu {
namespace {

using graph::OperandType;

float floatAt(const Bytes& bytes, OperandType type, size_t index) {
  if (type == OperandType::kTensorFloat16) {
    ops::Half value;
    std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
    return static_cast<float>(value);
  }
  float value;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

std::string compareFloats(OperandType type, const Bytes& made, const Bytes& expected,
                          float tolerance) {
  const size_t count = expected.size() / graph::elementSize(type);
  float greatest = 0.0f;
  for (size_t i = 0; i < count; ++i) {
    const float value = std::abs(floatAt(expected, type, i));
    if (std::isfinite(value)) greatest = std::max(greatest, value);
  }
  for (size_t i = 0; i < count; ++i) {
    const float a = floatAt(made, type, i);
    const float b = floatAt(expected, type, i);
    const bool isSame =
        a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance * greatest;
    if (!isSame) return base::formatText("element {} is {}, it must be {}", i, a, b);
  }
  return {};
}

std::string compareSteps(OperandType type, const Bytes& made, const Bytes& expected) {
  const bool isSigned = type == OperandType::kTensorQuant8AsymmSigned;
  for (size_t i = 0; i < expected.size(); ++i) {
    const int a = isSigned ? static_cast<int8_t>(made[i]) : made[i];
    const int b = isSigned ? static_cast<int8_t>(expected[i]) : expected[i];
    if (std::abs(a - b) > 1) return base::formatText("element {} is {}, it must be {}", i, a, b);
  }
  return {};
}

// Whether all kernels of the execution graph can be built.
Status checkKernels(const graph::Model& model) {
  HEARTH_TRY(initializeXnnpack());
  PackedWeights weights;
  PlanBuilder builder(model, &weights, {});
  HEARTH_TRY(builder.build());
  const auto constants = builder.constants().takeCopies();
  Plan plan = builder.takePlan();
  HEARTH_TRY(planArena(&plan, 0));
  return KernelFactory(plan, nullptr).makeAll();
}

}  // namespace

const char* floatLayerKernel() {
  return hasF32Gemm() ? "own" : "xnnpack";
}

const char* hybridLayerKernel(bool isInt4, bool isOnPanels) {
  const bool isOnDots = hasAvxVnni() && !hasAvx512Vnni() && !isInt4;
  const bool hasPanels = isOnPanels && !hasAvxVnni() && hasAvx2Qd8Panels();
  return hasQd8Gemm() || isOnDots || hasPanels ? "own" : "xnnpack";
}

std::vector<float> randomFloats(size_t count, unsigned seed, float spread) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-spread, spread);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

std::vector<float> risingScales(size_t count, float step) {
  std::vector<float> scales(count);
  for (size_t i = 0; i < count; ++i) scales[i] = 0.01f + step * static_cast<float>(i);
  return scales;
}

Bytes randomBytes(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

Result<std::vector<Bytes>> runPrepared(const graph::Model& model,
                                       const std::shared_ptr<hal::PreparedModel>& prepared,
                                       const std::vector<Bytes>& inputs) {
  hal::Request request;
  std::vector<hal::cts::GuardedMemory> memory;
  // A kernel that goes beyond the end of an input or output ends the process.
  const auto add = [&](size_t size, std::vector<hal::Argument>* arguments) {
    memory.emplace_back(size, hal::cts::GuardedMemory::Place::kAtEnd);
    hal::Argument argument;
    argument.kind = hal::Argument::Kind::kPointer;
    argument.pointer = memory.back().data();
    argument.length = size;
    arguments->push_back(argument);
    return memory.back().data();
  };
  for (const Bytes& input : inputs) std::ranges::copy(input, add(input.size(), &request.inputs));
  for (const uint32_t index : model.main().outputs) {
    HEARTH_ASSIGN(const uint64_t size, graph::byteSize(model.main().operands[index]));
    // A kernel that does not write all of its output leaves some of these bytes.
    std::fill_n(add(size, &request.outputs), size, uint8_t{0xA5});
  }
  HEARTH_ASSIGN(const auto execution, prepared->createExecution(request));
  const hal::ExecutionResult result = execution->compute({});
  HEARTH_TRY(result.status);
  std::vector<Bytes> outputs;
  for (const hal::Argument& output : request.outputs) {
    const auto* data = static_cast<const uint8_t*>(output.pointer);
    outputs.emplace_back(data, data + output.length);
  }
  return outputs;
}

Result<Comparison> runBoth(const graph::Model& model, const std::vector<Bytes>& inputs) {
  hal::PrepareOptions options;
  options.threads = 2;
  const auto shared = std::make_shared<graph::Model>(model);
  HEARTH_ASSIGN(const auto prepared, createCpuDevice()->prepareModel(shared, options, {}));
  HEARTH_ASSIGN(const auto reference, hal::prepareInterpreted(shared, {}, nullptr, "a test",
                                                              nullptr, ops::KernelSet::kReference));
  Comparison both;
  HEARTH_ASSIGN(both.made, runPrepared(model, prepared, inputs));
  HEARTH_ASSIGN(both.expected, runPrepared(model, reference, inputs));
  return both;
}

std::string differenceFromReference(const graph::Model& model, const std::vector<Bytes>& inputs,
                                    const char* kernel, float tolerance) {
  const auto support = createCpuDevice()->explainOperations(model);
  if (!support) return support.error().toString();
  if (kernel != nullptr && support->back().kernel != kernel)
    return base::formatText("the kernel is {}", support->back().kernel);
  for (const graph::Operation& operation : model.main().operations)
    if (ops::reference::findKernel(operation.type) == nullptr)
      return base::formatText("{} has no reference kernel", graph::nameOf(operation.type));
  if (const Status status = checkKernels(model); !status) return status.error().toString();
  auto both = runBoth(model, inputs);
  if (!both) return both.error().toString();
  const auto& [made, expected] = *both;
  for (size_t i = 0; i < made.size(); ++i) {
    const OperandType type = model.main().operands[model.main().outputs[i]].type;
    std::string difference;
    if (type == OperandType::kTensorFloat32 || type == OperandType::kTensorFloat16)
      difference = compareFloats(type, made[i], expected[i], tolerance);
    else if (type == OperandType::kTensorQuant8Asymm ||
             type == OperandType::kTensorQuant8AsymmSigned)
      difference = compareSteps(type, made[i], expected[i]);
    else if (made[i] != expected[i])
      difference = "the bytes differ";
    if (!difference.empty()) return base::formatText("In output {} {}.", i, difference);
  }
  return {};
}

}  // namespace hearth::cpu
