// SPDX-License-Identifier: Apache-2.0
// QUANTIZED_16BIT_LSTM: one step of a cell whose input and output are 8-bit with scale 1/128 and
// zero point 128 and whose state is 16-bit with scale 2^-11.
//
// NNAPI's conformance vectors multiply rows that begin with the recurrent weights by columns that
// begin with the input: where the two sizes differ, recurrent weights are multiplied by input
// values. This kernel does the same.
#include <algorithm>
#include <vector>

#include "ops/fixed_point.h"
#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

enum Input : size_t {
  kInput = 0,
  kInputWeights = 1,      // 4 gates: input, forget, cell, output
  kRecurrentWeights = 5,  // 4 gates
  kBias = 9,              // 4 gates
  kCellState = 13,
  kOutputState = 14,
  kInputCount = 15,
};
constexpr size_t kInputGate = 0;
constexpr size_t kForgetGate = 1;
constexpr size_t kCellGate = 2;
constexpr size_t kOutputGate = 3;

constexpr float kActivationScale = 1.0f / 128.0f;
constexpr int32_t kActivationZeroPoint = 128;
constexpr float kStateScale = 1.0f / 2048.0f;
constexpr int kStateIntegerBits = 4;

Status requireQuantization(const Signature& signature, const graph::Operand& operand, float scale,
                           int32_t zeroPoint) {
  if (operand.scale == scale && operand.zeroPoint == zeroPoint) return {};
  return fail(ErrorCode::kBadData,
              "The argument {} of {} has scale {} and zero point {}, they must be {} and {}.",
              graph::describe(operand), signature.describe(), operand.scale, operand.zeroPoint,
              scale, zeroPoint);
}

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(kInputCount, 2));
  for (size_t i = kInput; i < kBias; ++i) {
    HEARTH_TRY(signature.inputTensor(i, OperandType::kTensorQuant8Asymm, 2, 2));
    if (i > kInputWeights) HEARTH_TRY(signature.sameQuantization(i, kInputWeights));
  }
  for (size_t i = kBias; i < kCellState; ++i) {
    HEARTH_TRY(signature.inputTensor(i, OperandType::kTensorInt32, 1, 1));
  }
  HEARTH_TRY(signature.inputType(kCellState, OperandType::kTensorQuant16Symm));
  HEARTH_TRY(signature.inputType(kOutputState, OperandType::kTensorQuant8Asymm));
  HEARTH_TRY(signature.outputType(0, OperandType::kTensorQuant16Symm));
  HEARTH_TRY(signature.outputType(1, OperandType::kTensorQuant8Asymm));
  for (const graph::Operand* operand :
       {&signature.input(kInput), &signature.input(kOutputState), &signature.output(1)})
    HEARTH_TRY(requireQuantization(signature, *operand, kActivationScale, kActivationZeroPoint));
  for (const graph::Operand* operand : {&signature.input(kCellState), &signature.output(0)})
    HEARTH_TRY(requireQuantization(signature, *operand, kStateScale, 0));
  return {};
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, kInputCount, 0));
  HEARTH_TRY(requireRank(context, kInput, 2, 2));
  HEARTH_TRY(requireRank(context, kOutputState, 2, 2));
  const Dimensions& input = context.inputs[kInput].dimensions;
  const Dimensions state = {input[0], context.inputs[kOutputState].dimensions[1]};
  for (size_t gate = 0; gate < 4; ++gate) {
    HEARTH_TRY(requireShape(context, kInputWeights + gate, {state[1], input[1]}));
    HEARTH_TRY(requireShape(context, kRecurrentWeights + gate, {state[1], state[1]}));
    HEARTH_TRY(requireShape(context, kBias + gate, {state[1]}));
  }
  HEARTH_TRY(requireShape(context, kCellState, state));
  HEARTH_TRY(requireShape(context, kOutputState, state));
  HEARTH_TRY(context.setOutputDimensions(0, state));
  return context.setOutputDimensions(1, state);
}

// Sums wrap modulo 2^32: overflow of a signed sum would be undefined.
uint32_t dot(const uint8_t* weights, int32_t weightsZeroPoint, const uint8_t* values,
             size_t count) {
  uint32_t sum = 0;
  for (size_t i = 0; i < count; ++i)
    sum +=
        static_cast<uint32_t>((weights[i] - weightsZeroPoint) * (values[i] - kActivationZeroPoint));
  return sum;
}

class Cell {
 public:
  explicit Cell(const OperationContext& context)
      : context_(context),
        inputSize_(context.inputs[kInput].dimensions[1]),
        outputSize_(context.inputs[kOutputState].dimensions[1]),
        weightsZeroPoint_(context.inputs[kInputWeights].operand->zeroPoint),
        scale_(
            toFixedMultiplier(4096.0 * static_cast<double>(kActivationScale) *
                              static_cast<double>(context.inputs[kInputWeights].operand->scale))) {}

  // The argument of a gate's function, with 12 fraction bits. `values` is the input followed by the
  // previous output.
  int16_t sum(size_t gate, size_t unit, const uint8_t* values) const {
    const auto* bias = context_.inputs[kBias + gate].as<int32_t>();
    const auto* recurrentWeights = context_.inputs[kRecurrentWeights + gate].as<uint8_t>();
    const auto* inputWeights = context_.inputs[kInputWeights + gate].as<uint8_t>();
    const uint32_t total =
        static_cast<uint32_t>(bias[unit]) +
        dot(recurrentWeights + unit * outputSize_, weightsZeroPoint_, values, outputSize_) +
        dot(inputWeights + unit * inputSize_, weightsZeroPoint_, values + outputSize_, inputSize_);
    return static_cast<int16_t>(
        std::clamp(multiply(static_cast<int32_t>(total), scale_), -32768, 32767));
  }

  void step(const uint8_t* values, const int16_t* cellState, int16_t* nextCellState,
            uint8_t* nextOutput) const {
    for (size_t i = 0; i < outputSize_; ++i) {
      const int32_t admitted = logisticQ15(sum(kInputGate, i, values));
      const int32_t candidate = tanhQ15(sum(kCellGate, i, values), 3);
      const int32_t forget = logisticQ15(sum(kForgetGate, i, values));
      const int32_t shown = logisticQ15(sum(kOutputGate, i, values));
      const int32_t added = divideByPowerOfTwo(multiplyQ15(admitted, candidate), kStateIntegerBits);
      const int16_t state = static_cast<int16_t>(
          std::clamp(added + multiplyQ15(forget, cellState[i]), -32768, 32767));
      const int32_t activated = multiplyQ15(shown, tanhQ15(state, kStateIntegerBits));
      const int32_t rounded = std::clamp(divideByPowerOfTwo(activated, 8), -128, 127);
      nextCellState[i] = state;
      nextOutput[i] = static_cast<uint8_t>(rounded + kActivationZeroPoint);
    }
  }

 private:
  const OperationContext& context_;
  size_t inputSize_;
  size_t outputSize_;
  int32_t weightsZeroPoint_;
  FixedMultiplier scale_;
};

Status execute(OperationContext& context) {
  const Cell cell(context);
  const size_t inputSize = context.inputs[kInput].dimensions[1];
  const size_t outputSize = context.inputs[kOutputState].dimensions[1];
  std::vector<uint8_t> values(inputSize + outputSize);
  std::vector<int16_t> state(outputSize);
  std::vector<uint8_t> output(outputSize);
  for (size_t batch = 0; batch < context.inputs[kInput].dimensions[0]; ++batch) {
    std::copy_n(context.inputs[kInput].as<uint8_t>() + batch * inputSize, inputSize, values.data());
    std::copy_n(context.inputs[kOutputState].as<uint8_t>() + batch * outputSize, outputSize,
                values.data() + inputSize);
    cell.step(values.data(), context.inputs[kCellState].as<int16_t>() + batch * outputSize,
              state.data(), output.data());
    if (context.hasOutput(0))
      std::copy(state.begin(), state.end(), context.outputs[0].as<int16_t>() + batch * outputSize);
    if (context.hasOutput(1))
      std::copy(output.begin(), output.end(),
                context.outputs[1].as<uint8_t>() + batch * outputSize);
  }
  return {};
}

}  // namespace

const OperationDefinition kQuantized16bitLstmOperation = {OperationType::kQuantized16bitLstm,
                                                          validate, prepare, execute};

}  // namespace hearth::ops
