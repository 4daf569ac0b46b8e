// SPDX-License-Identifier: Apache-2.0
#include "ops/integer_lstm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "base/vector_dispatch.h"
#include "ops/quantized_sequence_lstm.h"
#include "ops/recurrent_activation.h"

namespace hearth::ops {

using namespace quantized_sequence_lstm;

namespace {

int16_t saturate16(int64_t value) {
  return static_cast<int16_t>(std::clamp<int64_t>(value, -32768, 32767));
}
int8_t saturate8(int64_t value) {
  return static_cast<int8_t>(std::clamp<int64_t>(value, -128, 127));
}

// sums[i] = bias[i] + weights[i, :] * values; a null bias is 0. Wraps like the 32-bit accumulators
// of the models' training tools.
void multiplyRows(const int8_t* weights, const int32_t* bias, const std::vector<int16_t>& values,
                  std::vector<int32_t>* sums) {
  const int16_t* const factors = values.data();
  int32_t* const results = sums->data();
  const size_t rows = sums->size();
  const size_t columns = values.size();
  base::onWidestVectors([=]() HEARTH_INLINE {
    for (size_t row = 0; row < rows; ++row) {
      const int8_t* const rowWeights = weights + row * columns;
      uint32_t sum = bias == nullptr ? 0 : static_cast<uint32_t>(bias[row]);
      for (size_t i = 0; i < columns; ++i)
        sum += static_cast<uint32_t>(static_cast<int32_t>(rowWeights[i]) * factors[i]);
      results[row] = static_cast<int32_t>(sum);
    }
  });
}

template <typename T>
const T* dataOf(const Tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->as<T>();
}

float scaleOf(const Tensor* tensor) {
  return tensor == nullptr ? 0.0f : tensor->operand->scale;
}

// A clipping bound in steps of a type; 0 (no clipping) for bounds that are not positive or NaN.
int32_t clipInSteps(float bound, float scale, int32_t highest) {
  const float steps = bound / scale;
  if (!(steps > 0.0f)) return 0;
  return steps >= static_cast<float>(highest) ? highest : static_cast<int32_t>(steps);
}

// Products that are added to the cell state have 30 fraction bits.
constexpr int kLeastCellScaleExponent = -30;

// tanh of cell states with the scale 2^exponent; the results have 15 fraction bits. tanhQ15() takes
// 0 to 6 integer bits. With more than 6, values that do not fit are saturated, where tanh is 1;
// with fewer than 0, the bits that are dropped are finer than the result.
void tanhOfCellStates(std::span<const int16_t> states, int exponent, int16_t* results) {
  constexpr int kMostIntegerBits = 6;
  const int integerBits = 15 + exponent;
  const int valid = std::clamp(integerBits, 0, kMostIntegerBits);
  if (valid == integerBits) return tanhQ15Each(states, valid, results);
  for (size_t i = 0; i < states.size(); ++i)
    results[i] = integerBits > valid
                     ? saturate16(int64_t{states[i]} << (integerBits - valid))
                     : static_cast<int16_t>(divideByPowerOfTwo(states[i], valid - integerBits));
  tanhQ15Each({results, states.size()}, valid, results);
}

void removeZeroPoint(const int8_t* source, int32_t zeroPoint, std::vector<int16_t>* target) {
  for (size_t i = 0; i < target->size(); ++i)
    (*target)[i] = static_cast<int16_t>(source[i] - zeroPoint);
}

}  // namespace

Status validateIntegerLstm(const Signature& signature) {
  constexpr TypeSet kWeights =
      OperandType::kTensorQuant8AsymmSigned | OperandType::kTensorQuant8Symm;
  constexpr TypeSet kWide = OperandType::kTensorQuant16Symm | OperandType::kTensorInt16;
  HEARTH_TRY(signature.inputType(kInput, OperandType::kTensorQuant8AsymmSigned));
  HEARTH_TRY(signature.optionalInputType(kInputWeights, kWeights));
  HEARTH_TRY(signature.optionalInputType(kRecurrentWeights, kWeights));
  HEARTH_TRY(signature.optionalInputType(kBias, OperandType::kTensorInt32));
  for (size_t gate = 1; gate < 4; ++gate) {
    HEARTH_TRY(signature.inputType(kInputWeights + gate, kWeights));
    HEARTH_TRY(signature.inputType(kRecurrentWeights + gate, kWeights));
    HEARTH_TRY(signature.inputType(kBias + gate, OperandType::kTensorInt32));
  }
  for (size_t i = 0; i < 3; ++i)
    HEARTH_TRY(signature.optionalInputType(kPeepholeWeights + i, kWide));
  for (size_t i = 0; i < 4; ++i)
    HEARTH_TRY(signature.optionalInputType(kLayerNormWeights + i, kWide));
  HEARTH_TRY(signature.optionalInputType(kProjectionWeights, kWeights));
  HEARTH_TRY(signature.optionalInputType(kProjectionBias, OperandType::kTensorInt32));
  HEARTH_TRY(signature.inputType(kOutputState, OperandType::kTensorQuant8AsymmSigned));
  HEARTH_TRY(signature.inputType(kCellState, kWide));
  HEARTH_TRY(signature.inputType(kCellClip, OperandType::kFloat32));
  HEARTH_TRY(signature.inputType(kProjectionClip, OperandType::kFloat32));
  for (size_t i = 0; i <= kLayerNormWeights + 3; ++i) {
    if (!signature.hasInput(i)) continue;
    const graph::Operand& operand = signature.input(i);
    const bool isSymmetric = i != kInput && i != kOutputState;
    if (isSymmetric && operand.zeroPoint != 0)
      return fail(ErrorCode::kBadData, "Input {} of {} has the zero point {}, it must be 0.", i,
                  signature.describe(), operand.zeroPoint);
  }
  return {};
}

namespace {

const Tensor* optional(const OperationContext& context, size_t index) {
  return context.hasInput(index) ? &context.inputs[index] : nullptr;
}

}  // namespace

Result<IntegerLstmArguments> readIntegerLstm(const OperationContext& context, uint32_t batches) {
  for (const size_t i :
       {kInput, kInputWeights + 1, kInputWeights + 2, kInputWeights + 3, kRecurrentWeights + 1,
        kRecurrentWeights + 2, kRecurrentWeights + 3, kOutputState, kCellState})
    if (!context.hasInput(i))
      return fail(ErrorCode::kBadData, "{} lacks its input {}.", context.describe(), i);
  HEARTH_TRY(
      requireTogether(context, &OperationContext::hasInput, {kInputWeights, kRecurrentWeights}));
  HEARTH_TRY(requireTogether(context, &OperationContext::hasInput,
                             {kPeepholeWeights + 1, kPeepholeWeights + 2}));
  HEARTH_TRY(
      requireTogether(context, &OperationContext::hasInput,
                      {kLayerNormWeights + 1, kLayerNormWeights + 2, kLayerNormWeights + 3}));
  const Dimensions& weights = context.inputs[kInputWeights + 1].dimensions;
  const Dimensions& recurrent = context.inputs[kRecurrentWeights + 1].dimensions;
  if (weights.size() != 2 || recurrent.size() != 2)
    return fail(ErrorCode::kBadData, "{} has weights of rank {} and {}, they must be matrices.",
                context.describe(), weights.size(), recurrent.size());
  IntegerLstmArguments arguments;
  arguments.inputSize = context.inputs[kInput].dimensions.back();
  arguments.unitCount = weights[0];
  arguments.outputSize = recurrent[1];
  const uint32_t units = arguments.unitCount;
  for (size_t i = 0; i < 4; ++i) {
    HEARTH_TRY(requireShape(context, kInputWeights + i, {units, arguments.inputSize}));
    HEARTH_TRY(requireShape(context, kRecurrentWeights + i, {units, arguments.outputSize}));
    HEARTH_TRY(requireShape(context, kBias + i, {units}));
    HEARTH_TRY(requireShape(context, kLayerNormWeights + i, {units}));
    if (i < 3) HEARTH_TRY(requireShape(context, kPeepholeWeights + i, {units}));
  }
  HEARTH_TRY(requireShape(context, kProjectionWeights, {arguments.outputSize, units}));
  HEARTH_TRY(requireShape(context, kProjectionBias, {arguments.outputSize}));
  HEARTH_TRY(requireShape(context, kOutputState, {batches, arguments.outputSize}));
  HEARTH_TRY(requireShape(context, kCellState, {batches, units}));
  if (!context.hasInput(kProjectionWeights) && arguments.outputSize != units)
    return fail(ErrorCode::kBadData, "{} has {} units and {} outputs without a projection.",
                context.describe(), units, arguments.outputSize);
  const auto gate = [&](size_t index, size_t peephole) {
    IntegerLstmArguments::Gate found;
    found.inputWeights = optional(context, kInputWeights + index);
    found.recurrentWeights = optional(context, kRecurrentWeights + index);
    found.bias = optional(context, kBias + index);
    found.layerNormWeights = optional(context, kLayerNormWeights + index);
    if (peephole < 3) found.peepholeWeights = optional(context, kPeepholeWeights + peephole);
    return found;
  };
  arguments.input = gate(0, 0);
  arguments.forget = gate(1, 1);
  arguments.cell = gate(2, 3);
  arguments.output = gate(3, 2);
  arguments.projectionWeights = optional(context, kProjectionWeights);
  arguments.projectionBias = optional(context, kProjectionBias);
  arguments.inputOperand = context.inputs[kInput].operand;
  arguments.outputStateOperand = context.inputs[kOutputState].operand;
  arguments.cellStateOperand = context.inputs[kCellState].operand;
  HEARTH_ASSIGN(arguments.cellClip, context.scalar<float>(kCellClip));
  HEARTH_ASSIGN(arguments.projectionClip, context.scalar<float>(kProjectionClip));
  return arguments;
}

IntegerLstm::Gate IntegerLstm::makeGate(const IntegerLstmArguments& arguments,
                                        const IntegerLstmArguments::Gate& gate) const {
  Gate made;
  made.inputWeights = dataOf<int8_t>(gate.inputWeights);
  made.recurrentWeights = dataOf<int8_t>(gate.recurrentWeights);
  made.peepholeWeights = dataOf<int16_t>(gate.peepholeWeights);
  made.bias = dataOf<int32_t>(gate.bias);
  made.layerNormWeights = dataOf<int16_t>(gate.layerNormWeights);
  // Factors are computed in float32, as TensorFlow Lite does, whose states these have to equal:
  // rounded otherwise in their last place, they are steps apart after some dozens of updates.
  const float scale = gate.intermediateScale;
  made.inputScale =
      toFixedMultiplier(scaleOf(gate.inputWeights) * arguments.inputOperand->scale / scale);
  made.recurrentScale = toFixedMultiplier(scaleOf(gate.recurrentWeights) *
                                          arguments.outputStateOperand->scale / scale);
  made.peepholeScale =
      toFixedMultiplier(std::ldexp(scaleOf(gate.peepholeWeights), cellScaleExponent_) / scale);
  if (gate.layerNormWeights != nullptr) {
    made.layerNormScale = toFixedMultiplier(scaleOf(gate.layerNormWeights));
    made.varianceGuard = static_cast<int32_t>(std::clamp(
        10000.0 * static_cast<double>(scaleOf(gate.layerNormWeights)), 1.0, 2147483647.0));
  }
  return made;
}

Result<IntegerLstm> IntegerLstm::make(const OperationContext& context,
                                      const IntegerLstmArguments& arguments) {
  IntegerLstm lstm;
  lstm.inputSize_ = arguments.inputSize;
  lstm.unitCount_ = arguments.unitCount;
  lstm.outputSize_ = arguments.outputSize;
  lstm.isCoupled_ = arguments.input.inputWeights == nullptr;
  const double cellScale = arguments.cellStateOperand->scale;
  const double logarithm = std::log2(cellScale);
  const double exponent = std::round(logarithm);
  if (!(std::abs(logarithm - exponent) < 1e-3 && exponent >= kLeastCellScaleExponent &&
        exponent <= 0.0))
    return fail(ErrorCode::kBadData,
                "The cell state of {} has the scale {}, it must be a power of two from 2^{} to 1.",
                context.describe(), cellScale, kLeastCellScaleExponent);
  lstm.cellScaleExponent_ = static_cast<int>(exponent);
  for (const auto* gate :
       {&arguments.input, &arguments.forget, &arguments.cell, &arguments.output}) {
    const bool isUsed = gate != &arguments.input || !lstm.isCoupled_;
    if (isUsed && !(std::isfinite(gate->intermediateScale) && gate->intermediateScale > 0.0f))
      return fail(ErrorCode::kBadData, "{} has an intermediate scale of {}, it must be positive.",
                  context.describe(), gate->intermediateScale);
  }
  if (!(std::isfinite(arguments.hiddenScale) && arguments.hiddenScale > 0.0f) ||
      arguments.hiddenZeroPoint < -128 || arguments.hiddenZeroPoint > 127)
    return fail(ErrorCode::kBadData,
                "{} has the hidden scale {} and zero point {}, they must be positive and in "
                "[-128, 127].",
                context.describe(), arguments.hiddenScale, arguments.hiddenZeroPoint);
  if (!lstm.isCoupled_) lstm.inputGate_ = lstm.makeGate(arguments, arguments.input);
  lstm.forgetGate_ = lstm.makeGate(arguments, arguments.forget);
  lstm.cellGate_ = lstm.makeGate(arguments, arguments.cell);
  lstm.outputGate_ = lstm.makeGate(arguments, arguments.output);
  lstm.projectionWeights_ = dataOf<int8_t>(arguments.projectionWeights);
  lstm.projectionBias_ = dataOf<int32_t>(arguments.projectionBias);
  lstm.hiddenScale_ = toFixedMultiplier(0x1p-30f / arguments.hiddenScale);
  lstm.projectionScale_ =
      toFixedMultiplier(scaleOf(arguments.projectionWeights) * arguments.hiddenScale /
                        arguments.outputStateOperand->scale);
  lstm.hiddenZeroPoint_ = arguments.hiddenZeroPoint;
  lstm.inputZeroPoint_ = arguments.inputOperand->zeroPoint;
  lstm.outputZeroPoint_ = arguments.outputStateOperand->zeroPoint;
  lstm.cellClip_ = clipInSteps(arguments.cellClip, arguments.cellStateOperand->scale, 32767);
  lstm.projectionClip_ =
      clipInSteps(arguments.projectionClip, arguments.outputStateOperand->scale, 127);
  lstm.inputValues_.resize(lstm.inputSize_);
  lstm.outputValues_.resize(lstm.outputSize_);
  lstm.hiddenValues_.resize(lstm.unitCount_);
  lstm.fromInput_.resize(lstm.unitCount_);
  lstm.fromState_.resize(lstm.unitCount_);
  if (lstm.projectionWeights_ != nullptr) lstm.projected_.resize(lstm.outputSize_);
  for (auto* values : {&lstm.inputGateValues_, &lstm.forgetGateValues_, &lstm.cellGateValues_,
                       &lstm.outputGateValues_})
    values->resize(lstm.unitCount_);
  return lstm;
}

void IntegerLstm::computeGate(const Gate& gate, const int16_t* cellState,
                              std::vector<int16_t>* values) {
  const bool addsBias = gate.layerNormWeights == nullptr;
  multiplyRows(gate.inputWeights, addsBias ? gate.bias : nullptr, inputValues_, &fromInput_);
  multiplyEach(fromInput_, gate.inputScale, fromInput_.data());
  multiplyRows(gate.recurrentWeights, nullptr, outputValues_, &fromState_);
  multiplyEach(fromState_, gate.recurrentScale, fromState_.data());
  for (size_t i = 0; i < unitCount_; ++i) {
    // Each contribution is rounded and saturated before the next is added.
    int16_t value = saturate16(fromInput_[i]);
    value = saturate16(int64_t{value} + fromState_[i]);
    if (gate.peepholeWeights != nullptr)
      value = saturate16(int64_t{value} + multiply(int32_t{gate.peepholeWeights[i]} * cellState[i],
                                                   gate.peepholeScale));
    (*values)[i] = value;
  }
  if (gate.layerNormWeights != nullptr) normalize(gate, values);
}

void IntegerLstm::normalize(const Gate& gate, std::vector<int16_t>* values) const {
  constexpr int64_t kOverflowGuard = 1 << 20;
  const int64_t count = static_cast<int64_t>(values->size());
  if (count == 0) return;
  int64_t sum = 0;
  int64_t sumOfSquares = 0;
  for (const int16_t value : *values) {
    sum += value;
    sumOfSquares += int32_t{value} * value;
  }
  // The mean has 10 fraction bits. The variance has 20, and loses them below.
  const int64_t mean = sum * 1024 / count;
  const int64_t variance = (sumOfSquares * (kOverflowGuard / count) - mean * mean) / kOverflowGuard;
  const FixedMultiplier inverse = inverseSquareRoot(
      variance < 1 ? gate.varianceGuard
                   : static_cast<int32_t>(std::min<int64_t>(variance, INT32_MAX)));
  FixedMultiplier weightScale = gate.layerNormScale;
  weightScale.shift += 12;  // gates have 12 fraction bits
  for (size_t i = 0; i < values->size(); ++i) {
    const int32_t centred = static_cast<int32_t>(1024 * int64_t{(*values)[i]} - mean);
    const int64_t weighted = int64_t{multiply(centred, inverse)} * gate.layerNormWeights[i] +
                             (gate.bias == nullptr ? 0 : gate.bias[i]);
    const int64_t rounded = (weighted > 0 ? weighted + 512 : weighted - 512) / 1024;
    (*values)[i] = saturate16(multiply(
        static_cast<int32_t>(std::clamp<int64_t>(rounded, std::numeric_limits<int32_t>::min(),
                                                 std::numeric_limits<int32_t>::max())),
        weightScale));
  }
}

void IntegerLstm::step(const int8_t* input, int8_t* outputState, int16_t* cellState) {
  removeZeroPoint(input, inputZeroPoint_, &inputValues_);
  removeZeroPoint(outputState, outputZeroPoint_, &outputValues_);
  computeGate(forgetGate_, cellState, &forgetGateValues_);
  logisticQ15Each(forgetGateValues_, forgetGateValues_.data());
  computeGate(cellGate_, cellState, &cellGateValues_);
  tanhQ15Each(cellGateValues_, 3, cellGateValues_.data());
  if (!isCoupled_) {
    computeGate(inputGate_, cellState, &inputGateValues_);
    logisticQ15Each(inputGateValues_, inputGateValues_.data());
  }
  for (size_t i = 0; i < unitCount_; ++i) {
    const int32_t forget = forgetGateValues_[i];
    const int32_t admitted = isCoupled_ ? 32767 - forget : inputGateValues_[i];
    const int64_t kept = saturate16(divideByPowerOfTwo(forget * cellState[i], 15));
    const int64_t added =
        saturate16(divideByPowerOfTwo(admitted * cellGateValues_[i], 30 + cellScaleExponent_));
    int32_t state = saturate16(kept + added);
    if (cellClip_ > 0) state = std::clamp(state, -cellClip_, cellClip_);
    cellState[i] = static_cast<int16_t>(state);
  }
  computeGate(outputGate_, cellState, &outputGateValues_);
  logisticQ15Each(outputGateValues_, outputGateValues_.data());
  tanhOfCellStates({cellState, unitCount_}, cellScaleExponent_, cellGateValues_.data());
  for (size_t i = 0; i < unitCount_; ++i) {
    const int32_t product = int32_t{outputGateValues_[i]} * cellGateValues_[i];
    const int8_t hidden = saturate8(int64_t{multiply(product, hiddenScale_)} + hiddenZeroPoint_);
    if (projectionWeights_ == nullptr)
      outputState[i] = hidden;
    else
      hiddenValues_[i] = static_cast<int16_t>(hidden - hiddenZeroPoint_);
  }
  if (projectionWeights_ == nullptr) return;
  multiplyRows(projectionWeights_, projectionBias_, hiddenValues_, &projected_);
  for (size_t i = 0; i < outputSize_; ++i) {
    int32_t value =
        saturate8(int64_t{multiply(projected_[i], projectionScale_)} + outputZeroPoint_);
    if (projectionClip_ > 0) value = std::clamp(value, -projectionClip_, projectionClip_);
    outputState[i] = static_cast<int8_t>(value);
  }
}

}  // namespace hearth::ops
