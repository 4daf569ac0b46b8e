// SPDX-License-Identifier: Apache-2.0
// Convolutions, pooling, fully connected layers, matrix products and normalisation.
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "frontends/tflite/translators/translators.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;
using graph::OperationType;
using schema::BuiltinOperator;

bool isFloat(OperandType type) {
  return type == OperandType::kTensorFloat32 || type == OperandType::kTensorFloat16;
}

// The bias, with the scale that NNAPI wants: input times weights, or 0 with scales per channel.
Result<uint32_t> bias(OperatorView& view, size_t index, uint32_t input, uint32_t weights) {
  const OperandType inputType = view.operand(input).type;
  const OperandType weightsType = view.operand(weights).type;
  const float scale = weightsType == OperandType::kTensorQuant8SymmPerChannel
                          ? 0.0f
                          : view.operand(input).scale * view.operand(weights).scale;
  if (!view.hasInput(index))
    return view.builder().omitted(isFloat(inputType) ? inputType : OperandType::kTensorInt32);
  HEARTH_ASSIGN(const uint32_t found, view.input(index));
  graph::Operand& operand = view.builder().operand(found);
  if (operand.type != OperandType::kTensorInt32 || isFloat(inputType) || operand.scale == scale)
    return found;
  if (operand.isConstant())
    return view.builder().retypedConstant(found, OperandType::kTensorInt32, scale);
  if (operand.scale == 0.0f && operand.lifetime == graph::Lifetime::kTemporary)
    operand.scale = scale;
  return found;
}

uint32_t dimension(OperatorView& view, uint32_t operand, size_t index) {
  const graph::Dimensions& dimensions = view.operand(operand).dimensions;
  return index < dimensions.size() ? dimensions[index] : 0;
}

Status appendDilation(OperatorView& view, int32_t width, int32_t height,
                      std::vector<uint32_t>* arguments) {
  if (width == 1 && height == 1) return {};
  HEARTH_ASSIGN(const uint32_t layout, view.scalar(false));
  HEARTH_ASSIGN(const uint32_t dilationWidth, view.scalar(width));
  HEARTH_ASSIGN(const uint32_t dilationHeight, view.scalar(height));
  arguments->insert(arguments->end(), {layout, dilationWidth, dilationHeight});
  return {};
}

// The arguments that all windowed operations share, in the order of NNAPI's lists.
struct Window {
  uint32_t padding = 0;
  uint32_t strideWidth = 0;
  uint32_t strideHeight = 0;
};

template <typename Options>
Result<Window> window(OperatorView& view, const Options& options) {
  Window found;
  HEARTH_ASSIGN(found.padding, view.padding(options.padding()));
  HEARTH_ASSIGN(found.strideWidth, view.scalar(options.stride_w()));
  HEARTH_ASSIGN(found.strideHeight, view.scalar(options.stride_h()));
  return found;
}

// An activation and the argument that fuses it.
struct Fuse {
  Activation activation;
  uint32_t argument = 0;
};

template <typename Options>
Result<Fuse> fuse(OperatorView& view, const Options& options) {
  Fuse found;
  HEARTH_ASSIGN(found.activation, view.planActivation(options.fused_activation_function()));
  HEARTH_ASSIGN(found.argument, view.scalar(found.activation.fuse));
  return found;
}

Status emit(OperatorView& view, OperationType type, std::vector<uint32_t> arguments,
            const Fuse& fused) {
  HEARTH_TRY(view.emit(type, std::move(arguments), {fused.activation.target}));
  return view.finishActivation(fused.activation);
}

// Input, filter and bias of an operator.
struct Weighted {
  uint32_t input = 0;
  uint32_t filter = 0;
  uint32_t bias = 0;
};

Result<Weighted> weighted(OperatorView& view, size_t input, size_t filter, size_t biasIndex) {
  Weighted found;
  HEARTH_ASSIGN(found.input, view.input(input));
  HEARTH_ASSIGN(found.filter, view.input(filter));
  HEARTH_ASSIGN(found.bias, bias(view, biasIndex, found.input, found.filter));
  return found;
}

Status translateConv2d(OperatorView& view, OperationType) {
  const auto& options = view.options<schema::Conv2DOptions>();
  HEARTH_ASSIGN(const Weighted tensors, weighted(view, 0, 1, 2));
  HEARTH_ASSIGN(const Window at, window(view, options));
  HEARTH_ASSIGN(const Fuse fused, fuse(view, options));
  std::vector<uint32_t> arguments = {tensors.input, tensors.filter, tensors.bias,
                                     at.padding,    at.strideWidth, at.strideHeight};
  OperationType type = OperationType::kConv2d;
  const uint32_t channels = dimension(view, tensors.input, 3);
  const uint32_t filterChannels = dimension(view, tensors.filter, 3);
  if (channels != 0 && filterChannels != 0 && channels != filterChannels) {
    if (channels % filterChannels != 0)
      return fail(ErrorCode::kBadData,
                  "Its input has {} channels, which its filter's {} do not divide.", channels,
                  filterChannels);
    if (options.dilation_w_factor() != 1 || options.dilation_h_factor() != 1)
      return fail(ErrorCode::kUnsupported,
                  "It is grouped and dilated by {}x{}, which is not supported.",
                  options.dilation_h_factor(), options.dilation_w_factor());
    type = OperationType::kGroupedConv2d;
    HEARTH_ASSIGN(const uint32_t groups,
                  view.scalar(static_cast<int32_t>(channels / filterChannels)));
    HEARTH_ASSIGN(const uint32_t layout, view.scalar(false));
    arguments.insert(arguments.end(), {groups, fused.argument, layout});
  } else {
    arguments.push_back(fused.argument);
    HEARTH_TRY(
        appendDilation(view, options.dilation_w_factor(), options.dilation_h_factor(), &arguments));
  }
  return emit(view, type, std::move(arguments), fused);
}

Status translateDepthwiseConv2d(OperatorView& view, OperationType type) {
  const auto& options = view.options<schema::DepthwiseConv2DOptions>();
  HEARTH_ASSIGN(const Weighted tensors, weighted(view, 0, 1, 2));
  int32_t multiplier = options.depth_multiplier();
  if (multiplier == 0) {
    const uint32_t channels = dimension(view, tensors.input, 3);
    const uint32_t filterChannels = dimension(view, tensors.filter, 3);
    if (channels == 0 || filterChannels % channels != 0)
      return fail(ErrorCode::kBadData,
                  "Its depth multiplier is not given, and {} filter channels are no multiple of {} "
                  "input channels.",
                  filterChannels, channels);
    multiplier = static_cast<int32_t>(filterChannels / channels);
  }
  HEARTH_ASSIGN(const Window at, window(view, options));
  HEARTH_ASSIGN(const uint32_t depthMultiplier, view.scalar(multiplier));
  HEARTH_ASSIGN(const Fuse fused, fuse(view, options));
  std::vector<uint32_t> arguments = {tensors.input,   tensors.filter, tensors.bias,
                                     at.padding,      at.strideWidth, at.strideHeight,
                                     depthMultiplier, fused.argument};
  HEARTH_TRY(
      appendDilation(view, options.dilation_w_factor(), options.dilation_h_factor(), &arguments));
  return emit(view, type, std::move(arguments), fused);
}

Status translateTransposeConv(OperatorView& view, OperationType type) {
  const auto& options = view.options<schema::TransposeConvOptions>();
  HEARTH_ASSIGN(const uint32_t outputShape, view.intTensorInput(0));
  HEARTH_ASSIGN(const Weighted tensors, weighted(view, 2, 1, 3));
  HEARTH_ASSIGN(const Window at, window(view, options));
  HEARTH_ASSIGN(const Fuse fused, fuse(view, options));
  HEARTH_ASSIGN(const uint32_t layout, view.scalar(false));
  return emit(view, type,
              {tensors.input, tensors.filter, tensors.bias, outputShape, at.padding, at.strideWidth,
               at.strideHeight, fused.argument, layout},
              fused);
}

// What CONV_3D and its transposed form share: three arguments, then the window.
Status emitConv3d(OperatorView& view, OperationType type, std::vector<uint32_t> arguments,
                  std::span<const uint32_t> last) {
  const auto& options = view.options<schema::Conv3DOptions>();
  HEARTH_ASSIGN(const uint32_t padding, view.padding(options.padding()));
  arguments.push_back(padding);
  HEARTH_ASSIGN(const Activation activation,
                view.planActivation(options.fused_activation_function()));
  for (const int32_t value :
       {options.stride_d(), options.stride_h(), options.stride_w(), options.dilation_d_factor(),
        options.dilation_h_factor(), options.dilation_w_factor(), activation.fuse}) {
    HEARTH_ASSIGN(const uint32_t scalar, view.scalar(value));
    arguments.push_back(scalar);
  }
  arguments.insert(arguments.end(), last.begin(), last.end());
  HEARTH_TRY(view.emit(type, std::move(arguments), {activation.target}));
  return view.finishActivation(activation);
}

Status translateConv3d(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t filter, view.input(1));
  HEARTH_ASSIGN(const uint32_t offset, view.inputOr(2, view.operand(input).type));
  return emitConv3d(view, type, {input, filter, offset}, {});
}

Status translateConv3dTranspose(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t shape, view.intTensorInput(0));
  HEARTH_ASSIGN(const uint32_t filter, view.input(1));
  HEARTH_ASSIGN(const uint32_t input, view.input(2));
  HEARTH_ASSIGN(const uint32_t offset, view.inputOr(3, view.operand(input).type));
  return emitConv3d(view, type, {input, filter, offset}, {&shape, 1});
}

Status translatePool2d(OperatorView& view, OperationType type) {
  const auto& options = view.options<schema::Pool2DOptions>();
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const Window at, window(view, options));
  HEARTH_ASSIGN(const uint32_t filterWidth, view.scalar(options.filter_width()));
  HEARTH_ASSIGN(const uint32_t filterHeight, view.scalar(options.filter_height()));
  HEARTH_ASSIGN(const Fuse fused, fuse(view, options));
  return emit(view, type,
              {input, at.padding, at.strideWidth, at.strideHeight, filterWidth, filterHeight,
               fused.argument},
              fused);
}

// uint8 data and weights with 16-bit results, which NNAPI lacks: the layer is computed in float32
// and rounded once.
Status emitWideFullyConnected(OperatorView& view, const Weighted& tensors, const Fuse& fused,
                              uint32_t output) {
  HEARTH_ASSIGN(const uint32_t input, view.dequantized(tensors.input));
  HEARTH_ASSIGN(const uint32_t filter, view.dequantized(tensors.filter));
  HEARTH_ASSIGN(uint32_t bias, view.builder().omitted(OperandType::kTensorFloat32));
  if (view.operand(tensors.bias).hasValue()) {
    HEARTH_ASSIGN(const uint32_t steps, view.floatsLike(tensors.bias));
    HEARTH_TRY(view.emit(OperationType::kCast, {tensors.bias}, {steps}));
    HEARTH_ASSIGN(bias, view.floatsLike(tensors.bias));
    HEARTH_ASSIGN(const uint32_t scale, view.floatTensor(view.operand(tensors.input).scale *
                                                         view.operand(tensors.filter).scale));
    HEARTH_ASSIGN(const uint32_t none, view.scalar(kFuseNone));
    HEARTH_TRY(view.emit(OperationType::kMul, {steps, scale, none}, {bias}));
  }
  HEARTH_ASSIGN(const uint32_t sums, view.floatsLike(output));
  HEARTH_TRY(
      view.emit(OperationType::kFullyConnected, {input, filter, bias, fused.argument}, {sums}));
  return view.emit(OperationType::kQuantize, {sums}, {output});
}

// keep_num_dims needs no argument, since the declared rank of the output implies it.
Status translateFullyConnected(OperatorView& view, OperationType type) {
  const auto& options = view.options<schema::FullyConnectedOptions>();
  if (options.weights_format() != schema::FullyConnectedWeightsFormat::DEFAULT)
    return fail(ErrorCode::kUnsupported, "Its weights have the shuffled format {}.",
                static_cast<int>(options.weights_format()));
  HEARTH_ASSIGN(const Weighted tensors, weighted(view, 0, 1, 2));
  HEARTH_ASSIGN(const Fuse fused, fuse(view, options));
  const bool isUint8 = view.operand(tensors.input).type == OperandType::kTensorQuant8Asymm &&
                       view.operand(tensors.filter).type == OperandType::kTensorQuant8Asymm;
  if (isUint8 && view.isQuantized16(fused.activation.output))
    return emitWideFullyConnected(view, tensors, fused, fused.activation.output);
  std::vector<uint32_t> arguments = {tensors.input, tensors.filter, tensors.bias, fused.argument};
  HEARTH_ASSIGN(const uint32_t scales, view.blockScales(1));
  if (view.operand(scales).hasValue()) arguments.push_back(scales);
  return emit(view, type, std::move(arguments), fused);
}

// The sums of products of int8 numbers as INT32, without scale and zero point. float32 holds them
// exactly as long as they are no more than these.
Status emitInt32Product(OperatorView& view, uint32_t left, uint32_t right,
                        std::span<const uint32_t> transposed, uint32_t output) {
  constexpr uint32_t kMostTerms = (1 << 24) / (128 * 128);
  const graph::Dimensions& shape = view.operand(left).dimensions;
  const bool isTransposed = view.options<schema::BatchMatMulOptions>().adj_x();
  const uint32_t terms = shape.size() < 2 ? 0 : shape[shape.size() - (isTransposed ? 2 : 1)];
  if (terms == 0 || terms > kMostTerms)
    return fail(ErrorCode::kUnsupported,
                "It adds {} products of int8 numbers as INT32, from 1 to {} are supported.", terms,
                kMostTerms);
  std::vector<uint32_t> arguments;
  for (const uint32_t factor : {left, right}) {
    HEARTH_ASSIGN(const uint32_t floats, view.floatsLike(factor));
    HEARTH_TRY(view.emit(OperationType::kCast, {factor}, {floats}));
    arguments.push_back(floats);
  }
  arguments.insert(arguments.end(), transposed.begin(), transposed.end());
  HEARTH_ASSIGN(const uint32_t sums, view.floatsLike(output));
  HEARTH_TRY(view.emit(OperationType::kBatchMatmul, std::move(arguments), {sums}));
  return view.emit(OperationType::kCast, {sums}, {output});
}

// 8-bit weights beside float data are widened, which is more exact than TFLite's quantising the
// data. Scales per channel beside 8-bit data, which NNAPI lacks, take the way over floats as well.
Status translateBatchMatmul(OperatorView& view, OperationType type) {
  const auto& options = view.options<schema::BatchMatMulOptions>();
  HEARTH_ASSIGN(uint32_t left, view.input(0));
  HEARTH_ASSIGN(uint32_t right, view.input(1));
  HEARTH_ASSIGN(const uint32_t leftTransposed, view.scalar(options.adj_x()));
  HEARTH_ASSIGN(const uint32_t rightTransposed, view.scalar(options.adj_y()));
  HEARTH_ASSIGN(const uint32_t output, view.output(0));
  const OperandType data = view.operand(left).type;
  const OperandType weights = view.operand(right).type;
  const bool isHybrid =
      data == OperandType::kTensorFloat32 && (weights == OperandType::kTensorQuant8AsymmSigned ||
                                              weights == OperandType::kTensorQuant8SymmPerChannel);
  const bool isPerChannel = data == OperandType::kTensorQuant8AsymmSigned &&
                            weights == OperandType::kTensorQuant8SymmPerChannel;
  if (data == OperandType::kTensorQuant8AsymmSigned &&
      weights == OperandType::kTensorQuant8AsymmSigned &&
      view.operand(output).type == OperandType::kTensorInt32)
    return emitInt32Product(view, left, right, std::array{leftTransposed, rightTransposed}, output);
  uint32_t product = output;
  if (isHybrid || isPerChannel) {
    HEARTH_ASSIGN(left, view.dequantized(left));
    HEARTH_ASSIGN(right, view.dequantized(right));
  }
  if (isPerChannel) {
    HEARTH_ASSIGN(product, view.floatsLike(output));
  }
  HEARTH_TRY(view.emit(type, {left, right, leftTransposed, rightTransposed}, {product}));
  return isPerChannel ? view.emit(OperationType::kQuantize, {product}, {output}) : Status();
}

Status translateL2Normalization(OperatorView& view, OperationType type) {
  const auto& options = view.options<schema::L2NormOptions>();
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const Activation activation,
                view.planActivation(options.fused_activation_function(), false));
  HEARTH_TRY(view.emit(type, {input}, {activation.target}));
  return view.finishActivation(activation);
}

Status translateLocalResponseNormalization(OperatorView& view, OperationType type) {
  const auto& options = view.options<schema::LocalResponseNormalizationOptions>();
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t radius, view.scalar(options.radius()));
  HEARTH_ASSIGN(const uint32_t biasOperand, view.scalar(options.bias()));
  HEARTH_ASSIGN(const uint32_t alpha, view.scalar(options.alpha()));
  HEARTH_ASSIGN(const uint32_t beta, view.scalar(options.beta()));
  return view.emit(type, {input, radius, biasOperand, alpha, beta});
}

}  // namespace

std::span<const TranslatorEntry> convTranslators() {
  static constexpr TranslatorEntry kTranslators[] = {
      {BuiltinOperator::CONV_2D, translateConv2d, OperationType::kConv2d},
      {BuiltinOperator::DEPTHWISE_CONV_2D, translateDepthwiseConv2d,
       OperationType::kDepthwiseConv2d},
      {BuiltinOperator::TRANSPOSE_CONV, translateTransposeConv, OperationType::kTransposeConv2d},
      {BuiltinOperator::CONV_3D, translateConv3d, OperationType::kConv3d},
      {BuiltinOperator::CONV_3D_TRANSPOSE, translateConv3dTranspose,
       OperationType::kConv3dTranspose},
      {BuiltinOperator::AVERAGE_POOL_2D, translatePool2d, OperationType::kAveragePool2d},
      {BuiltinOperator::MAX_POOL_2D, translatePool2d, OperationType::kMaxPool2d},
      {BuiltinOperator::L2_POOL_2D, translatePool2d, OperationType::kL2Pool2d},
      {BuiltinOperator::FULLY_CONNECTED, translateFullyConnected, OperationType::kFullyConnected},
      {BuiltinOperator::BATCH_MATMUL, translateBatchMatmul, OperationType::kBatchMatmul},
      {BuiltinOperator::L2_NORMALIZATION, translateL2Normalization,
       OperationType::kL2Normalization},
      {BuiltinOperator::LOCAL_RESPONSE_NORMALIZATION, translateLocalResponseNormalization,
       OperationType::kLocalResponseNormalization},
  };
  return kTranslators;
}

}  // namespace hearth::tflite
