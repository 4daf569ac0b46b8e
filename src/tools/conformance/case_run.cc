// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/case_run.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/format.h"
#include "ops/nnapi_limits.h"
#include "tools/conformance/case_model.h"
#include "tools/conformance/compare.h"

namespace hearth::conformance {
namespace {

constexpr uint64_t kShortLoopTimeout = 200'000'000;

// Memory of one argument, between guard bytes that the device must not write.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t size) : size_(size), bytes_(size + 2 * kGuard, kPattern) {}

  uint8_t* data() { return bytes_.data() + kGuard; }
  size_t size() const { return size_; }

  bool isIntact() const {
    return std::all_of(bytes_.begin(), bytes_.begin() + kGuard, isPattern) &&
           std::all_of(bytes_.end() - kGuard, bytes_.end(), isPattern);
  }

 private:
  static constexpr size_t kGuard = 64;
  static constexpr uint8_t kPattern = 0xa5;
  static bool isPattern(uint8_t byte) { return byte == kPattern; }

  size_t size_;
  std::vector<uint8_t> bytes_;
};

// Checks the error of a case that must fail.
Status judgeFailure(const Case& testCase, const Error& error) {
  if ((testCase.flags & kInfiniteLoop) != 0 &&
      error.code() != ErrorCode::kMissedDeadlineTransient &&
      error.code() != ErrorCode::kMissedDeadlinePersistent)
    return fail(ErrorCode::kBadData, "The endless loop ends with another error: {}",
                error.toString());
  return {};
}

bool mustFail(const Case& testCase) {
  return (testCase.flags & (kExpectFailure | kInfiniteLoop)) != 0;
}

Status checkOutputs(const Case& testCase, const CaseModel& model,
                    const hal::ExecutionResult& result, std::vector<GuardedBuffer>& outputs) {
  if (result.outputShapes.size() != outputs.size())
    return fail(ErrorCode::kBadData, "{} output shapes are reported for {} outputs.",
                result.outputShapes.size(), outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const CaseValue& expected = model.outputs[i];
    if (!outputs[i].isIntact())
      return fail(ErrorCode::kBadData, "Bytes outside output {} were written.", i);
    if (expected.isIgnored) continue;
    const graph::Dimensions& dimensions = result.outputShapes[i].dimensions;
    if (dimensions != expected.dimensions)
      return fail(ErrorCode::kBadData, "Output {} has the dimensions {}, {} are expected.", i,
                  graph::describeDimensions(dimensions),
                  graph::describeDimensions(expected.dimensions));
    const std::span<const uint8_t> actual(outputs[i].data(), expected.data.size());
    if (testCase.multinomialTolerance > 0.0f && !model.inputs.empty())
      HEARTH_TRY_CONTEXT(compareMultinomial(testCase, model.inputs[0], actual), "in output {}", i);
    else
      HEARTH_TRY_CONTEXT(compareValues(testCase, expected, actual), "in output {}", i);
  }
  return {};
}

// Checks that every runtime makes before a device sees the model.
Status checkModel(const graph::Model& model) {
  HEARTH_TRY(graph::validate(model));
  for (const graph::Subgraph& subgraph : model.subgraphs)
    for (const graph::Operation& operation : subgraph.operations)
      HEARTH_TRY(ops::checkNnapiLimits(subgraph, operation));
  return {};
}

Status checkSupport(hal::Device& device, const graph::Model& model, bool isWanted,
                    std::vector<OperationKernel>* kernels) {
  auto supports = device.explainOperations(model);
  if (!supports) {
    if (!isWanted) return {};
    return std::unexpected(std::move(supports.error()).addContext("asking for support"));
  }
  if (supports->size() != model.main().operations.size())
    return fail(ErrorCode::kBadData, "The device reports on {} of {} operations.", supports->size(),
                model.main().operations.size());
  kernels->clear();
  for (size_t i = 0; i < supports->size(); ++i) {
    const hal::OperationSupport& support = (*supports)[i];
    kernels->push_back({graph::nameOf(model.main().operations[i].type), support.kernel});
    if (!support.supported && isWanted)
      return fail(ErrorCode::kUnsupported, "The device does not support operation {} ({}): {}", i,
                  graph::nameOf(model.main().operations[i].type), support.reason);
  }
  return {};
}

Status runVariant(hal::Device& device, const Case& testCase, Variant variant,
                  std::vector<OperationKernel>* kernels) {
  const bool isFailure = mustFail(testCase);
  auto built = buildModel(testCase, variant);
  if (!built) return isFailure ? Status() : std::unexpected(std::move(built.error()));
  if (Status status = checkModel(*built->model); !status)
    return isFailure ? Status() : std::unexpected(std::move(status.error()));
  HEARTH_TRY(checkSupport(device, *built->model, !isFailure, kernels));

  auto prepared = device.prepareModel(built->model, hal::PrepareOptions(), hal::Cache());
  if (!prepared) {
    if (isFailure && (testCase.flags & kInfiniteLoop) == 0) return {};
    return std::unexpected(std::move(prepared.error()).addContext("while preparing"));
  }
  hal::Request request;
  if ((testCase.flags & kInfiniteLoop) != 0) request.loopTimeout = kShortLoopTimeout;
  std::vector<GuardedBuffer> inputs;
  std::vector<GuardedBuffer> outputs;
  for (const CaseValue& value : built->inputs) {
    inputs.emplace_back(value.data.size());
    if (!value.data.empty())
      std::memcpy(inputs.back().data(), value.data.data(), value.data.size());
  }
  for (const CaseValue& value : built->outputs)
    outputs.emplace_back(std::max<size_t>(value.data.size(), 1));
  for (GuardedBuffer& buffer : inputs) {
    hal::Argument argument;
    if (buffer.size() != 0) {
      argument.kind = hal::Argument::Kind::kPointer;
      argument.pointer = buffer.data();
      argument.length = buffer.size();
    }
    request.inputs.push_back(argument);
  }
  for (GuardedBuffer& buffer : outputs) {
    hal::Argument argument;
    argument.kind = hal::Argument::Kind::kPointer;
    argument.pointer = buffer.data();
    argument.length = buffer.size();
    request.outputs.push_back(argument);
  }
  auto execution = (*prepared)->createExecution(std::move(request));
  if (!execution) {
    if (isFailure) return judgeFailure(testCase, execution.error());
    return std::unexpected(std::move(execution.error()).addContext("while binding arguments"));
  }
  for (const char* round : {"first", "second"}) {
    for (GuardedBuffer& buffer : outputs) std::memset(buffer.data(), 0x5a, buffer.size());
    const hal::ExecutionResult result = (*execution)->compute(base::Deadline());
    if (!result.status) {
      if (isFailure) return judgeFailure(testCase, result.status.error());
      Error error = result.status.error();
      return std::unexpected(std::move(error).addContext(base::formatText("in the {} run", round)));
    }
    if (isFailure) return fail(ErrorCode::kBadData, "The case must fail and does not.");
    HEARTH_TRY_CONTEXT(checkOutputs(testCase, *built, result, outputs), "in the {} run", round);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!inputs[i].isIntact() ||
          !std::equal(built->inputs[i].data.begin(), built->inputs[i].data.end(), inputs[i].data()))
        return fail(ErrorCode::kBadData, "Input {} was written to.", i);
  }
  return {};
}

}  // namespace

std::vector<std::string> operationsOf(const Case& testCase) {
  std::vector<std::string> names;
  for (const CaseSubgraph& subgraph : testCase.subgraphs)
    for (const graph::Operation& operation : subgraph.operations) {
      std::string name = graph::nameOf(operation.type);
      if (std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(std::move(name));
    }
  return names;
}

CaseResult runCase(hal::Device& device, const Case& testCase) {
  CaseResult result;
  for (Variant variant : variantsOf(testCase)) {
    std::vector<OperationKernel> kernels;
    Status status = runVariant(device, testCase, variant, &kernels);
    if (variant == Variant::kAsIs) result.kernels = std::move(kernels);
    if (!status) {
      result.message = base::formatText("{}: {}", nameOf(variant), status.error().toString());
      return result;
    }
  }
  result.hasPassed = true;
  return result;
}

}  // namespace hearth::conformance
