// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution.h"

namespace hearth::ops {
namespace {

constexpr TypeSet kSymmetricFilters =
    OperandType::kTensorQuant8Symm | OperandType::kTensorQuant8SymmPerChannel;

}  // namespace

Status validateFilterTypes(const Signature& signature, uint32_t channelDim, size_t blockScales) {
  HEARTH_TRY(
      signature.inputType(0, kFloatTensors | kQuant8Tensors | OperandType::kTensorQuant16Symm));
  const OperandType type = signature.input(0).type;
  TypeSet filters = type;
  TypeSet biases = type;
  if (kQuant8Tensors.contains(type)) {
    filters = filters | kSymmetricFilters;
    biases = OperandType::kTensorInt32;
  } else if (type == OperandType::kTensorQuant16Symm) {
    filters = kSymmetricFilters | OperandType::kTensorQuant8AsymmSigned;
    biases = OperandType::kTensorInt32 | OperandType::kTensorInt64;
  } else if (type == OperandType::kTensorFloat32) {
    filters = filters | kQuantizedWeights;
  }
  HEARTH_TRY(signature.inputType(1, filters));
  HEARTH_TRY(signature.optionalInputType(2, biases));
  HEARTH_TRY(signature.inputRank(2, 1, 1));
  const graph::Operand& filter = signature.input(1);
  if (!filter.perChannel.scales.empty() && filter.perChannel.channelDim != channelDim)
    return fail(ErrorCode::kBadData,
                "The filter of {} has scales along dimension {}, it must be {}.",
                signature.describe(), filter.perChannel.channelDim, channelDim);
  HEARTH_TRY(validateWeightScales(signature, 1, blockScales));
  return signature.outputTypeLike(0, 0);
}

Status validateConvolution(const Signature& signature, uint32_t channelDim, size_t first,
                           size_t layout) {
  HEARTH_TRY(validateFilterTypes(signature, channelDim));
  for (size_t i = first; i < signature.inputCount(); ++i) {
    if (i == layout)
      HEARTH_TRY(signature.optionalInputType(i, OperandType::kBool));
    else if (i > layout)
      HEARTH_TRY(signature.optionalInputType(i, OperandType::kInt32));
    else
      HEARTH_TRY(signature.inputType(i, OperandType::kInt32));
  }
  HEARTH_TRY(signature.inputRank(0, 4, 4));
  HEARTH_TRY(signature.inputRank(1, 4, 4));
  return signature.outputRank(0, 4, 4);
}

Status parseConvolutionWindow(const OperationContext& context, const WindowArguments& arguments,
                              WindowParameters* p) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  HEARTH_TRY(requireRank(context, 0, 4, 4));
  HEARTH_TRY(requireRank(context, 1, 4, 4));
  HEARTH_ASSIGN(p->isNchw, context.scalar<bool>(arguments.layout, false));
  HEARTH_ASSIGN(p->activation, parseActivation(context, arguments.activation));
  p->input = ImageShape::of(context.inputs[0].dimensions, p->isNchw);
  const Dimensions& filter = context.inputs[1].dimensions;
  HEARTH_TRY(setFilterSize(context, filter[1], filter[2], &p->window));
  return parseStrides(context, arguments.strides, arguments.dilations, &p->window);
}

Status checkBias(const OperationContext& context, uint64_t channels) {
  if (!context.hasInput(2)) return {};
  const Tensor& bias = context.inputs[2];
  if (bias.rank() != 1 || bias.dimensions[0] != channels)
    return fail(ErrorCode::kBadData, "The bias (input 2) of {} has the shape {}, it must be [{}].",
                context.describe(), graph::describeDimensions(bias.dimensions), channels);
  if (bias.type() != OperandType::kTensorInt32) return {};
  return checkBiasQuantization(context, 0, 1, 2);
}

std::vector<float> realBias(const OperationContext& context) {
  if (!context.hasInput(2)) return {};
  const Tensor& bias = context.inputs[2];
  if (kFloatTensors.contains(bias.type())) {
    const RealInput given(bias);
    return {given.begin(), given.end()};
  }
  const graph::Operand& filter = *context.inputs[1].operand;
  const graph::ChannelScales& scales = filter.perChannel.scales;
  std::vector<float> values(bias.elementCount());
  for (size_t i = 0; i < values.size(); ++i) {
    const double scale = static_cast<double>(context.inputs[0].operand->scale) *
                         (scales.empty() ? filter.scale : scales[i]);
    const double value = bias.type() == OperandType::kTensorInt64
                             ? static_cast<double>(bias.as<int64_t>()[i])
                             : bias.as<int32_t>()[i];
    values[i] = static_cast<float>(scale * value);
  }
  return values;
}

std::vector<int16_t> centredValues(const Tensor& tensor) {
  std::vector<int16_t> values(tensor.elementCount());
  const int32_t zeroPoint = tensor.operand->zeroPoint;
  const bool isUnsigned = tensor.type() == OperandType::kTensorQuant8Asymm;
  for (size_t i = 0; i < values.size(); ++i) {
    const int32_t value = isUnsigned ? tensor.as<uint8_t>()[i] : tensor.as<int8_t>()[i];
    values[i] = static_cast<int16_t>(value - zeroPoint);
  }
  return values;
}

Requantization makeRequantization(const OperationContext& context, FusedActivation activation) {
  const graph::Operand& filter = *context.inputs[1].operand;
  const graph::Operand& output = *context.outputs[0].operand;
  const double ratio = static_cast<double>(context.inputs[0].operand->scale) / output.scale;
  Requantization requantization;
  if (filter.type == OperandType::kTensorQuant8SymmPerChannel) {
    for (float scale : filter.perChannel.scales)
      requantization.multipliers.push_back(ratio * scale);
  } else {
    requantization.multipliers = {ratio * filter.scale};
  }
  requantization.zeroPoint = output.zeroPoint;
  const QuantizedRange range = quantizedActivationRange(activation, output);
  requantization.lowest = range.lowest;
  requantization.highest = range.highest;
  return requantization;
}

}  // namespace hearth::ops
