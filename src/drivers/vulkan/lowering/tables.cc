// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/lowering/tables.h"

#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "drivers/vulkan/lowering/broadcast.h"
#include "ops/reference/kernels.h"

namespace hearth::vulkan {
namespace {

constexpr uint32_t kBytes = 256;  // different values of a byte
constexpr uint32_t kSignBit = 0x80000000u;

Status runReference(const ops::OperationContext& operation) {
  const ops::reference::Kernel kernel = ops::reference::findKernel(operation.operation->type);
  if (kernel == nullptr)
    return fail(ErrorCode::kUnsupported, "{} has no reference kernel.", operation.describe());
  return kernel(operation);
}

std::vector<uint8_t> allBytes() {
  std::vector<uint8_t> values(kBytes);
  std::iota(values.begin(), values.end(), uint8_t{0});
  return values;
}

Result<std::vector<uint8_t>> tabulatePairs(ops::OperationContext operation) {
  std::vector<uint8_t> values = allBytes();
  std::vector<uint8_t> results(size_t{kBytes} * kBytes);
  operation.inputs[0].data = operation.inputs[1].data = values.data();
  operation.inputs[0].dimensions = {kBytes, 1};
  operation.inputs[1].dimensions = {1, kBytes};
  operation.outputs[0].data = results.data();
  operation.outputs[0].dimensions = {kBytes, kBytes};
  HEARTH_TRY(runReference(operation));
  return results;
}

// float32 numbers in their order, as integers.
float fromOrder(uint32_t place) {
  return std::bit_cast<float>((place & kSignBit) != 0 ? place ^ kSignBit : ~place);
}
uint32_t orderOf(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return (bits & kSignBit) != 0 ? ~bits : bits | kSignBit;
}

template <typename T>
std::vector<uint8_t> bytesOf(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace

int32_t lowestStored(graph::OperandType type) {
  return type == graph::OperandType::kTensorQuant8Asymm ? 0 : -128;
}

Result<std::vector<uint8_t>> tabulate(ops::OperationContext operation) {
  std::vector<uint8_t> values = allBytes();
  std::vector<uint8_t> results(kBytes * graph::elementSize(operation.outputs[0].type()));
  operation.inputs[0].data = values.data();
  operation.outputs[0].data = results.data();
  operation.inputs[0].dimensions = operation.outputs[0].dimensions = {kBytes};
  HEARTH_TRY(runReference(operation));
  return results;
}

Result<std::vector<uint8_t>> realSteps(ops::OperationContext operation) {
  const graph::OperandType type = operation.outputs[0].type();
  const int32_t lowest = lowestStored(type);
  // Each step lies behind `below` and not behind `above`.
  std::vector<uint32_t> below(kSteps, orderOf(-std::numeric_limits<float>::infinity()));
  std::vector<uint32_t> above(kSteps, orderOf(std::numeric_limits<float>::infinity()));
  std::vector<float> values(kSteps);
  std::vector<uint8_t> results(kSteps);
  operation.inputs[0].data = values.data();
  operation.outputs[0].data = results.data();
  operation.inputs[0].dimensions =
      operation.outputs[0].dimensions = {static_cast<uint32_t>(kSteps)};
  constexpr int kRounds = 32;  // each halves all distances
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < kSteps; ++i) values[i] = fromOrder(below[i] + (above[i] - below[i]) / 2);
    HEARTH_TRY(runReference(operation));
    for (size_t i = 0; i < kSteps; ++i) {
      const int32_t stored = lowest < 0 ? static_cast<int8_t>(results[i]) : results[i];
      const bool isReached = stored > lowest + static_cast<int32_t>(i);
      (isReached ? above : below)[i] = orderOf(values[i]);
    }
  }
  for (size_t i = 0; i < kSteps; ++i) values[i] = fromOrder(above[i]);
  return bytesOf(values);
}

std::vector<uint8_t> sumSteps(const graph::Operand& output, int64_t most,
                              const std::function<int32_t(int64_t)>& resultOf) {
  const int32_t lowest = lowestStored(output.type);
  std::vector<int32_t> steps;
  int64_t first = -most;
  for (size_t i = 0; i < kSteps; ++i) {
    // A step does not lie before the one below it.
    int64_t last = most + 1;
    while (first < last) {
      const int64_t middle = first + (last - first) / 2;
      if (resultOf(middle) > lowest + static_cast<int32_t>(i))
        last = middle;
      else
        first = middle + 1;
    }
    steps.push_back(first > most ? std::numeric_limits<int32_t>::max()
                                 : static_cast<int32_t>(first));
  }
  return bytesOf(steps);
}

Status addByteMap(LoweringContext& context, TensorId from, TensorId to, uint64_t count,
                  const std::array<uint8_t, 256>& results) {
  HEARTH_TRY(context.bitsSuffix(1));
  const TensorId table =
      context.addConstant(results.size(), [results]() -> Result<std::vector<uint8_t>> {
        return std::vector<uint8_t>(results.begin(), results.end());
      });
  // The parameters of broadcast.glsl for one row.
  const auto elements = static_cast<uint32_t>(count);
  Dispatch dispatch;
  dispatch.shader = "table.u8";
  dispatch.constant = 1;
  dispatch.bindings = {{from}, {from}, {table}, {to, true}};
  dispatch.parameters = {elements, 1, 1, 1, 1, 1, elements};
  for (const uint32_t step : {1, 0})
    dispatch.parameters.insert(dispatch.parameters.end(), {0, 0, 0, 0, 0, step});
  dispatch.parameters.insert(dispatch.parameters.end(), {0, 0});
  return context.addRow(std::move(dispatch), count);
}

Status addTable(LoweringContext& context, bool isOfTwo) {
  HEARTH_TRY(context.bitsSuffix(1));
  HEARTH_ASSIGN(std::vector<uint32_t> parameters,
                broadcastParameters(context, {0, isOfTwo ? size_t{1} : 0}));
  // The limits of an activation are in the table.
  parameters.insert(parameters.end(), {0, 0});
  const TensorId table = context.addConstant(
      isOfTwo ? uint64_t{kBytes} * kBytes : kBytes, [operation = context.operation(), isOfTwo] {
        return isOfTwo ? tabulatePairs(operation) : tabulate(operation);
      });
  Dispatch dispatch;
  dispatch.shader = "table.u8";
  dispatch.constant = isOfTwo ? 2 : 1;
  dispatch.bindings = {{context.inputTensor(0)},
                       {context.inputTensor(isOfTwo ? 1 : 0)},
                       {table},
                       {context.outputTensor(0), true}};
  dispatch.parameters = std::move(parameters);
  return context.addRow(std::move(dispatch), context.output(0).elementCount());
}

}  // namespace hearth::vulkan
