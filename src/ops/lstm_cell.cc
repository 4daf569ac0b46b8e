// SPDX-License-Identifier: Apache-2.0
#include "ops/lstm_cell.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace hearth::ops {
namespace {

// Inputs, counted from the first weights.
enum Input : size_t {
  kRecurrent = 4,
  kPeephole = 8,
  kBias = 11,
  kProjection = 15,
  kProjectionBias = 16,
};

// Normalises to mean 0 and variance 1.
void normalize(float* values, size_t count) {
  double sum = 0.0;
  for (size_t i = 0; i < count; ++i) sum += static_cast<double>(values[i]);
  const double mean = sum / static_cast<double>(count);
  double squares = 0.0;
  for (size_t i = 0; i < count; ++i) {
    const double distance = static_cast<double>(values[i]) - mean;
    squares += distance * distance;
  }
  constexpr double kSmallestVariance = 1e-8;
  const double factor = 1.0 / std::sqrt(squares / static_cast<double>(count) + kSmallestVariance);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>((static_cast<double>(values[i]) - mean) * factor);
}

void clip(float bound, float* values, size_t count) {
  if (!(bound > 0.0f)) return;
  for (size_t i = 0; i < count; ++i) values[i] = std::clamp(values[i], -bound, bound);
}

}  // namespace

Status validateLstm(const Signature& signature, const LstmLayout& layout) {
  const size_t weights = layout.weights;
  for (size_t i = 0; i <= kProjectionBias; ++i) {
    const bool isRequired = (i >= 1 && i <= 3) || (i >= kRecurrent + 1 && i <= kRecurrent + 3) ||
                            (i >= kBias + 1 && i <= kBias + 3);
    HEARTH_TRY(isRequired ? signature.inputTypeLike(weights + i, 0)
                          : signature.optionalInputTypeLike(weights + i, 0));
  }
  HEARTH_TRY(signature.inputTypeLike(layout.outputState, 0));
  HEARTH_TRY(signature.inputTypeLike(layout.cellState, 0));
  for (size_t i = 0; i < 4; ++i) {
    HEARTH_TRY(signature.optionalInputTypeLike(layout.layerNorm + i, 0));
    if (layout.auxInput != 0) HEARTH_TRY(signature.optionalInputTypeLike(layout.auxWeights + i, 0));
  }
  return {};
}

Result<LstmParameters> parseLstm(const OperationContext& context, const LstmLayout& layout,
                                 uint32_t inputSize, uint32_t batches) {
  const size_t weights = layout.weights;
  const size_t recurrent = weights + kRecurrent;
  const size_t peephole = weights + kPeephole;
  const size_t bias = weights + kBias;
  const size_t aux = layout.auxWeights;
  for (const size_t i :
       {weights + 1, weights + 2, weights + 3, recurrent + 1, recurrent + 2, recurrent + 3,
        bias + 1, bias + 2, bias + 3, layout.outputState, layout.cellState})
    if (!context.hasInput(i))
      return fail(ErrorCode::kBadData, "{} lacks its input {}.", context.describe(), i);
  HEARTH_TRY(requireTogether(context, isGiven, {weights, recurrent}));
  HEARTH_TRY(requireTogether(context, isGiven, {peephole + 1, peephole + 2}));
  HEARTH_TRY(requireTogether(context, isGiven,
                             {layout.layerNorm + 1, layout.layerNorm + 2, layout.layerNorm + 3}));
  const Dimensions& forgetWeights = context.inputs[weights + 1].dimensions;
  const Dimensions& forgetRecurrent = context.inputs[recurrent + 1].dimensions;
  if (forgetWeights.size() != 2 || forgetRecurrent.size() != 2)
    return fail(ErrorCode::kBadData, "{} has weights of rank {} and {}, they must be matrices.",
                context.describe(), forgetWeights.size(), forgetRecurrent.size());
  LstmParameters parameters;
  parameters.inputSize = inputSize;
  parameters.unitCount = forgetWeights[0];
  parameters.outputSize = forgetRecurrent[1];
  parameters.isCoupled = !isGiven(context, weights);
  const uint32_t units = parameters.unitCount;
  if (layout.auxInput != 0 && isGiven(context, aux + 1)) {
    HEARTH_TRY(requireTogether(context, isGiven, {layout.auxInput, aux + 1, aux + 2, aux + 3}));
    HEARTH_TRY(requireTogether(context, isGiven, {weights, aux}));
    parameters.auxSize = context.inputs[layout.auxInput].dimensions.back();
  }
  for (size_t i = 0; i < 4; ++i) {
    HEARTH_TRY(requireGivenShape(context, weights + i, {units, inputSize}));
    HEARTH_TRY(requireGivenShape(context, recurrent + i, {units, parameters.outputSize}));
    HEARTH_TRY(requireGivenShape(context, bias + i, {units}));
    HEARTH_TRY(requireGivenShape(context, layout.layerNorm + i, {units}));
    if (i < 3) HEARTH_TRY(requireGivenShape(context, peephole + i, {units}));
    if (parameters.auxSize > 0)
      HEARTH_TRY(requireGivenShape(context, aux + i, {units, parameters.auxSize}));
  }
  HEARTH_TRY(requireGivenShape(context, weights + kProjection, {parameters.outputSize, units}));
  HEARTH_TRY(requireGivenShape(context, weights + kProjectionBias, {parameters.outputSize}));
  const Dimensions outputState = {batches, parameters.outputSize};
  const Dimensions cellState = {batches, units};
  if (context.inputs[layout.outputState].dimensions != outputState ||
      context.inputs[layout.cellState].dimensions != cellState)
    return fail(ErrorCode::kBadData, "The states of {} have the shapes {} and {}, not {} and {}.",
                context.describe(),
                graph::describeDimensions(context.inputs[layout.outputState].dimensions),
                graph::describeDimensions(context.inputs[layout.cellState].dimensions),
                graph::describeDimensions(outputState), graph::describeDimensions(cellState));
  if (!isGiven(context, weights + kProjection) && parameters.outputSize != units)
    return fail(ErrorCode::kBadData, "{} has {} units and {} outputs without a projection.",
                context.describe(), units, parameters.outputSize);
  return parameters;
}

Status parseLstmScalars(const OperationContext& context, size_t index, LstmParameters* parameters) {
  HEARTH_ASSIGN(parameters->activation, parseRecurrentActivation(context, index));
  HEARTH_ASSIGN(parameters->cellClip, floatScalar(context, index + 1, 0.0f));
  HEARTH_ASSIGN(parameters->projectionClip, floatScalar(context, index + 2, 0.0f));
  return {};
}

const float* LstmCell::values(const OperationContext& context, size_t index) {
  if (!isGiven(context, index)) return nullptr;
  kept_.push_back(std::make_unique<RealInput>(context.inputs[index]));
  return kept_.back()->data();
}

LstmCell::LstmCell(const OperationContext& context, const LstmLayout& layout,
                   const LstmParameters& parameters)
    : parameters_(parameters) {
  const size_t weights = layout.weights;
  for (size_t i = parameters.isCoupled ? 1 : 0; i < 4; ++i) {
    inputWeights_[i] = values(context, weights + i);
    recurrentWeights_[i] = values(context, weights + kRecurrent + i);
    biases_[i] = values(context, weights + kBias + i);
    layerNormWeights_[i] = values(context, layout.layerNorm + i);
    if (parameters.auxSize > 0) auxWeights_[i] = values(context, layout.auxWeights + i);
  }
  if (!parameters.isCoupled) peepholeWeights_[kInputGate] = values(context, weights + kPeephole);
  peepholeWeights_[kForgetGate] = values(context, weights + kPeephole + 1);
  peepholeWeights_[kOutputGate] = values(context, weights + kPeephole + 2);
  projectionWeights_ = values(context, weights + kProjection);
  projectionBias_ = values(context, weights + kProjectionBias);
  const RealInput outputState(context.inputs[layout.outputState]);
  const RealInput cellState(context.inputs[layout.cellState]);
  outputState_.assign(outputState.begin(), outputState.end());
  cellState_.assign(cellState.begin(), cellState.end());
  for (std::vector<float>& gate : gates_) gate.resize(cellState_.size());
}

void LstmCell::computeGate(Gate gate, const Vectors& input, const Vectors& aux) {
  const size_t units = parameters_.unitCount;
  const float* bias = biases_[gate];
  const float* layerNorm = layerNormWeights_[gate];
  const float* peephole = peepholeWeights_[gate];
  std::vector<float>& values = gates_[gate];
  for (size_t first = 0; first < values.size(); first += units) {
    if (bias != nullptr && layerNorm == nullptr)
      std::copy_n(bias, units, values.data() + first);
    else
      std::fill_n(values.data() + first, units, 0.0f);
  }
  if (inputWeights_[gate] != nullptr)
    addProducts(inputWeights_[gate], units, parameters_.inputSize, input, values.data());
  if (auxWeights_[gate] != nullptr)
    addProducts(auxWeights_[gate], units, parameters_.auxSize, aux, values.data());
  if (recurrentWeights_[gate] != nullptr)
    addProducts(recurrentWeights_[gate], units, parameters_.outputSize,
                {outputState_.data(), parameters_.outputSize, input.count}, values.data());
  for (size_t first = 0; first < values.size(); first += units) {
    float* target = values.data() + first;
    if (peephole != nullptr)
      for (size_t i = 0; i < units; ++i) target[i] += peephole[i] * cellState_[first + i];
    if (layerNorm == nullptr) continue;
    normalize(target, units);
    for (size_t i = 0; i < units; ++i)
      target[i] = target[i] * layerNorm[i] + (bias != nullptr ? bias[i] : 0.0f);
  }
  applyActivation(gate == kCellGate ? parameters_.activation : RecurrentActivation::kSigmoid,
                  values.data(), values.size());
}

void LstmCell::step(const Vectors& input, const Vectors& aux) {
  const size_t count = cellState_.size();
  std::vector<float>& inputGate = gates_[kInputGate];
  std::vector<float>& cellGate = gates_[kCellGate];
  std::vector<float>& outputGate = gates_[kOutputGate];
  const std::vector<float>& forgetGate = gates_[kForgetGate];
  computeGate(kForgetGate, input, aux);
  computeGate(kCellGate, input, aux);
  if (parameters_.isCoupled)
    for (size_t i = 0; i < count; ++i) inputGate[i] = 1.0f - forgetGate[i];
  else
    computeGate(kInputGate, input, aux);
  for (size_t i = 0; i < count; ++i)
    cellState_[i] = forgetGate[i] * cellState_[i] + inputGate[i] * cellGate[i];
  clip(parameters_.cellClip, cellState_.data(), count);
  computeGate(kOutputGate, input, aux);
  cellGate = cellState_;
  applyActivation(parameters_.activation, cellGate.data(), count);
  for (size_t i = 0; i < count; ++i) outputGate[i] *= cellGate[i];
  if (projectionWeights_ == nullptr) {
    outputState_ = outputGate;
    return;
  }
  const size_t outputs = parameters_.outputSize;
  for (size_t first = 0; first < outputState_.size(); first += outputs) {
    if (projectionBias_ != nullptr)
      std::copy_n(projectionBias_, outputs, outputState_.data() + first);
    else
      std::fill_n(outputState_.data() + first, outputs, 0.0f);
  }
  addProducts(projectionWeights_, outputs, parameters_.unitCount,
              {outputGate.data(), parameters_.unitCount, input.count}, outputState_.data());
  clip(parameters_.projectionClip, outputState_.data(), outputState_.size());
}

void runLstm(LstmCell* cell, const SequenceShape& shape, bool isReversed, const float* input,
             size_t inputSize, const float* aux, size_t auxSize, size_t outputSize, float* output,
             size_t outputStride) {
  // Distance between the rows of two batch elements.
  const size_t rows = shape.isTimeMajor ? 1 : shape.steps;
  for (size_t i = 0; i < shape.steps; ++i) {
    const size_t first = shape.row(0, isReversed ? shape.steps - 1 - i : i);
    cell->step({input + first * inputSize, rows * inputSize, shape.batches},
               {aux == nullptr ? nullptr : aux + first * auxSize, rows * auxSize, shape.batches});
    for (size_t batch = 0; batch < shape.batches; ++batch)
      std::copy_n(cell->outputState(batch), outputSize,
                  output + (first + batch * rows) * outputStride);
  }
}

}  // namespace hearth::ops
