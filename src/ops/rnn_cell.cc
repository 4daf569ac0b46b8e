// SPDX-License-Identifier: Apache-2.0
#include "ops/rnn_cell.h"

#include <algorithm>

namespace hearth::ops {

Status validateRnn(const Signature& signature, const RnnLayout& layout) {
  for (size_t i = layout.weights; i <= layout.hiddenState(); ++i)
    HEARTH_TRY(signature.inputTypeLike(i, 0));
  return layout.auxWeights == 0 ? Status() : signature.optionalInputTypeLike(layout.auxWeights, 0);
}

Result<RnnParameters> parseRnn(const OperationContext& context, const RnnLayout& layout,
                               uint32_t inputSize, uint32_t auxSize, uint32_t batches) {
  for (size_t i = layout.weights; i <= layout.hiddenState(); ++i)
    if (!context.hasInput(i))
      return fail(ErrorCode::kBadData, "{} lacks its input {}.", context.describe(), i);
  HEARTH_TRY(requireRank(context, layout.bias(), 1, 1));
  RnnParameters parameters;
  parameters.inputSize = inputSize;
  parameters.auxSize = auxSize;
  parameters.unitCount = context.inputs[layout.bias()].dimensions[0];
  const uint32_t units = parameters.unitCount;
  HEARTH_TRY(requireShape(context, layout.weights, {units, inputSize}));
  HEARTH_TRY(requireShape(context, layout.recurrentWeights(), {units, units}));
  HEARTH_TRY(requireShape(context, layout.hiddenState(), {batches, units}));
  if (auxSize > 0) HEARTH_TRY(requireShape(context, layout.auxWeights, {units, auxSize}));
  return parameters;
}

RnnCell::RnnCell(const OperationContext& context, const RnnLayout& layout,
                 const RnnParameters& parameters)
    : parameters_(parameters),
      weights_(context.inputs[layout.weights]),
      recurrentWeights_(context.inputs[layout.recurrentWeights()]),
      bias_(context.inputs[layout.bias()]),
      next_(parameters.unitCount) {
  if (parameters.auxSize > 0)
    auxWeights_ = std::make_unique<RealInput>(context.inputs[layout.auxWeights]);
  const RealInput hidden(context.inputs[layout.hiddenState()]);
  hidden_.assign(hidden.begin(), hidden.end());
}

void RnnCell::step(size_t batch, const float* input, const float* aux) {
  const size_t units = parameters_.unitCount;
  float* hidden = hidden_.data() + batch * units;
  std::copy_n(bias_.data(), units, next_.data());
  addProduct(weights_.data(), units, parameters_.inputSize, input, next_.data());
  if (auxWeights_ != nullptr)
    addProduct(auxWeights_->data(), units, parameters_.auxSize, aux, next_.data());
  addProduct(recurrentWeights_.data(), units, units, hidden, next_.data());
  applyActivation(parameters_.activation, next_.data(), units);
  std::copy_n(next_.data(), units, hidden);
}

}  // namespace hearth::ops
