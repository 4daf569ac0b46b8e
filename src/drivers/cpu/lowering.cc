// SPDX-License-Identifier: Apache-2.0
// Which operations XNNPACK takes, and how their arguments become its parameters.
#include <algorithm>

#include "drivers/cpu/attention.h"
#include "drivers/cpu/convolution.h"
#include "drivers/cpu/elementwise.h"
#include "drivers/cpu/fully_connected.h"
#include "drivers/cpu/layout.h"
#include "drivers/cpu/plan_builder.h"
#include "drivers/cpu/pooling.h"
#include "ops/concatenation.h"
#include "ops/conv_2d.h"
#include "ops/fully_connected.h"
#include "ops/pad.h"
#include "ops/pool_2d.h"
#include "ops/reduce.h"
#include "ops/resize.h"
#include "ops/softmax.h"
#include "ops/split.h"
#include "ops/transpose.h"

namespace hearth::cpu {
namespace {

using graph::OperandType;
using graph::OperationType;

uint32_t inputOf(PlanBuilder* builder, size_t index) {
  return builder->context().operation->inputs[index];
}
uint32_t outputOf(PlanBuilder* builder, size_t index = 0) {
  return builder->context().operation->outputs[index];
}

Result<bool> lowerConvolution(PlanBuilder* builder, const ops::Conv2dParameters& parameters,
                              bool isDepthwise) {
  if (parameters.isNchw) return false;
  Convolution convolution;
  convolution.input = inputOf(builder, 0);
  convolution.filter = inputOf(builder, 1);
  if (builder->context().hasInput(2)) convolution.bias = inputOf(builder, 2);
  convolution.output = outputOf(builder);
  convolution.activation = parameters.activation;
  convolution.isDepthwise = isDepthwise;
  const ops::Window2d& window = parameters.window;
  convolution.top = window.padding.top;
  convolution.bottom = window.padding.bottom;
  convolution.left = window.padding.left;
  convolution.right = window.padding.right;
  convolution.kernelHeight = window.filterHeight;
  convolution.kernelWidth = window.filterWidth;
  convolution.strideHeight = window.strideHeight;
  convolution.strideWidth = window.strideWidth;
  convolution.dilationHeight = window.dilationHeight;
  convolution.dilationWidth = window.dilationWidth;
  convolution.groups = parameters.groups;
  convolution.groupInputChannels = parameters.groupInputChannels;
  convolution.groupOutputChannels = parameters.groupOutputChannels;
  convolution.batch = parameters.input.batches;
  convolution.inputHeight = parameters.input.height;
  convolution.inputWidth = parameters.input.width;
  convolution.outputHeight = parameters.output.height;
  convolution.outputWidth = parameters.output.width;
  return addConvolution(builder, convolution);
}

Result<bool> lowerConv2d(PlanBuilder* builder) {
  HEARTH_ASSIGN(const auto parameters, ops::parseConv2d(builder->context()));
  return lowerConvolution(builder, parameters, false);
}

Result<bool> lowerGroupedConv2d(PlanBuilder* builder) {
  HEARTH_ASSIGN(const auto parameters, ops::parseGroupedConv2d(builder->context()));
  return lowerConvolution(builder, parameters, false);
}

Result<bool> lowerDepthwiseConv2d(PlanBuilder* builder) {
  HEARTH_ASSIGN(const auto parameters, ops::parseDepthwiseConv2d(builder->context()));
  return lowerConvolution(builder, parameters, true);
}

Result<bool> lowerPool2d(PlanBuilder* builder) {
  HEARTH_ASSIGN(const auto parameters, ops::parsePool2d(builder->context()));
  if (parameters.isNchw) return false;
  Pooling pooling;
  pooling.input = inputOf(builder, 0);
  pooling.output = outputOf(builder);
  pooling.isMaximum = builder->context().operation->type == OperationType::kMaxPool2d;
  pooling.activation = parameters.activation;
  const ops::Window2d& window = parameters.window;
  pooling.top = window.padding.top;
  pooling.bottom = window.padding.bottom;
  pooling.left = window.padding.left;
  pooling.right = window.padding.right;
  pooling.filterHeight = window.filterHeight;
  pooling.filterWidth = window.filterWidth;
  pooling.strideHeight = window.strideHeight;
  pooling.strideWidth = window.strideWidth;
  pooling.batch = parameters.input.batches;
  pooling.inputHeight = parameters.input.height;
  pooling.inputWidth = parameters.input.width;
  pooling.channels = parameters.input.channels;
  pooling.outputHeight = parameters.output.height;
  pooling.outputWidth = parameters.output.width;
  // A window over the whole image is a mean over it, which XNNPACK has for int8, too.
  const graph::Operand& input = builder->operand(pooling.input);
  const bool isGlobal = pooling.outputHeight == 1 && pooling.outputWidth == 1 &&
                        pooling.top + pooling.bottom + pooling.left + pooling.right == 0 &&
                        pooling.filterHeight == pooling.inputHeight &&
                        pooling.filterWidth == pooling.inputWidth;
  if (!pooling.isMaximum && isGlobal && input.type == OperandType::kTensorQuant8AsymmSigned &&
      pooling.activation == ops::FusedActivation::kNone)
    return addMean(builder, pooling.input, pooling.output, {1, 2});
  return addPooling(builder, pooling);
}

Result<bool> lowerFullyConnected(PlanBuilder* builder) {
  HEARTH_ASSIGN(const auto parameters, ops::parseFullyConnected(builder->context()));
  FullyConnected layer;
  layer.input = inputOf(builder, 0);
  layer.filter = inputOf(builder, 1);
  if (builder->context().hasInput(2)) layer.bias = inputOf(builder, 2);
  layer.output = outputOf(builder);
  layer.activation = parameters.activation;
  layer.rows = parameters.batches;
  layer.inputChannels = parameters.inputSize;
  layer.outputChannels = parameters.units;
  layer.hasBlockScales = builder->context().hasInput(4);
  return addFullyConnected(builder, layer);
}

Result<bool> lowerSoftmax(PlanBuilder* builder) {
  HEARTH_ASSIGN(const auto parameters, ops::parseSoftmax(builder->context()));
  if (parameters.axis + 1 != builder->context().inputs[0].rank()) return false;
  return addSoftmax(builder, inputOf(builder, 0), outputOf(builder), parameters.beta);
}

template <xnn_binary_operator kOperator>
Result<bool> lowerArithmetic(PlanBuilder* builder) {
  HEARTH_ASSIGN(const ops::FusedActivation activation, ops::parseActivation(builder->context(), 2));
  return addBinary(builder, kOperator, inputOf(builder, 0), inputOf(builder, 1), outputOf(builder),
                   activation);
}

template <xnn_binary_operator kOperator>
Result<bool> lowerPlainBinary(PlanBuilder* builder) {
  return addBinary(builder, kOperator, inputOf(builder, 0), inputOf(builder, 1), outputOf(builder),
                   ops::FusedActivation::kNone);
}

template <xnn_unary_operator kOperator>
Result<bool> lowerUnary(PlanBuilder* builder) {
  return addUnary(builder, kOperator, nullptr, inputOf(builder, 0), outputOf(builder));
}

template <ops::FusedActivation kActivation>
Result<bool> lowerClamp(PlanBuilder* builder) {
  return addClamp(builder, inputOf(builder, 0), outputOf(builder), kActivation);
}

// Makes the output a converted constant: a constant whose readers all pack it stays as it is until
// then. False when it is none, or somebody else reads it.
bool convertsConstant(PlanBuilder* builder) {
  const uint32_t output = outputOf(builder);
  const auto packs = [&](uint32_t reader) {
    const graph::Operation& operation = builder->operation(reader);
    const bool hasWeights = operation.type == OperationType::kFullyConnected ||
                            operation.type == OperationType::kConv2d;
    return hasWeights && !builder->isReferenceOnly(reader) && operation.inputs[0] != output &&
           (operation.inputs[1] == output || operation.inputs[2] == output);
  };
  if (builder->operand(inputOf(builder, 0)).isConstant() &&
      builder->operand(output).type == OperandType::kTensorFloat32 &&
      !builder->isGraphOutput(output) && !builder->consumers(output).empty() &&
      std::ranges::all_of(builder->consumers(output), packs)) {
    builder->setConverted(output);
    return true;
  }
  return false;
}

Result<bool> lowerDequantize(PlanBuilder* builder) {
  if (convertsConstant(builder)) return true;
  return lowerUnary<xnn_unary_convert>(builder);
}

Result<bool> lowerCast(PlanBuilder* builder) {
  return convertsConstant(builder);
}

// Same bytes in another shape; parameters were checked by shape inference.
Result<bool> lowerRename(PlanBuilder* builder) {
  addRename(builder, inputOf(builder, 0), outputOf(builder));
  return true;
}

Result<bool> lowerConcatenation(PlanBuilder* builder) {
  HEARTH_ASSIGN(const auto parameters, ops::parseConcatenation(builder->context()));
  const std::vector<uint32_t>& inputs = builder->context().operation->inputs;
  return addConcatenation(builder, {inputs.begin(), inputs.begin() + parameters.tensorCount},
                          outputOf(builder), parameters.axis);
}

Result<bool> lowerSplit(PlanBuilder* builder) {
  HEARTH_ASSIGN(const auto parameters, ops::parseSplit(builder->context()));
  return addSplit(builder, inputOf(builder, 0), builder->context().operation->outputs,
                  parameters.axis);
}

Result<bool> lowerTranspose(PlanBuilder* builder) {
  HEARTH_ASSIGN(const auto parameters, ops::parseTranspose(builder->context()));
  return addTranspose(builder, inputOf(builder, 0), outputOf(builder), parameters.permutation);
}

Result<bool> lowerPad(PlanBuilder* builder) {
  HEARTH_ASSIGN(const auto parameters, ops::parsePad(builder->context()));
  return addZeroPad(builder, inputOf(builder, 0), outputOf(builder), parameters.before,
                    parameters.after);
}

Result<bool> lowerMean(PlanBuilder* builder) {
  HEARTH_ASSIGN(const auto parameters, ops::parseReduce(builder->context()));
  std::vector<uint32_t> axes;
  for (uint32_t i = 0; i < parameters.isReduced.size(); ++i)
    if (parameters.isReduced[i]) axes.push_back(i);
  return addMean(builder, inputOf(builder, 0), outputOf(builder), axes);
}

Result<bool> lowerResizeBilinear(PlanBuilder* builder) {
  HEARTH_ASSIGN(const auto parameters, ops::parseResize(builder->context()));
  if (parameters.isNchw) return false;
  return addResizeBilinear(builder, inputOf(builder, 0), outputOf(builder), parameters.alignCorners,
                           parameters.halfPixelCenters);
}

Result<bool> lowerAttention(PlanBuilder* builder) {
  Attention attention;
  HEARTH_ASSIGN(attention.parameters, ops::parseAttention(builder->context()));
  attention.queries = inputOf(builder, 0);
  attention.keys = inputOf(builder, 1);
  attention.values = inputOf(builder, 2);
  if (builder->context().hasInput(3)) attention.mask = inputOf(builder, 3);
  attention.output = outputOf(builder);
  return addAttention(builder, attention);
}

}  // namespace

Lowering findLowering(OperationType type) {
  switch (type) {
    case OperationType::kConv2d:
      return lowerConv2d;
    case OperationType::kGroupedConv2d:
      return lowerGroupedConv2d;
    case OperationType::kDepthwiseConv2d:
      return lowerDepthwiseConv2d;
    case OperationType::kAveragePool2d:
      return lowerPool2d;
    case OperationType::kMaxPool2d:
      return lowerPool2d;
    case OperationType::kFullyConnected:
      return lowerFullyConnected;
    case OperationType::kSoftmax:
      return lowerSoftmax;
    case OperationType::kAdd:
      return lowerArithmetic<xnn_binary_add>;
    case OperationType::kSub:
      return lowerArithmetic<xnn_binary_subtract>;
    case OperationType::kMul:
      return lowerArithmetic<xnn_binary_multiply>;
    case OperationType::kDiv:
      return lowerArithmetic<xnn_binary_divide>;
    case OperationType::kMaximum:
      return lowerPlainBinary<xnn_binary_maximum>;
    case OperationType::kMinimum:
      return lowerPlainBinary<xnn_binary_minimum>;
    case OperationType::kRelu:
      return lowerClamp<ops::FusedActivation::kRelu>;
    case OperationType::kRelu1:
      return lowerClamp<ops::FusedActivation::kRelu1>;
    case OperationType::kRelu6:
      return lowerClamp<ops::FusedActivation::kRelu6>;
    case OperationType::kLogistic:
      return lowerUnary<xnn_unary_sigmoid>;
    case OperationType::kTanh:
      return lowerUnary<xnn_unary_tanh>;
    case OperationType::kAbs:
      return lowerUnary<xnn_unary_abs>;
    case OperationType::kNeg:
      return lowerUnary<xnn_unary_negate>;
    case OperationType::kFloor:
      return lowerUnary<xnn_unary_floor>;
    case OperationType::kHardSwish:
      return lowerUnary<xnn_unary_hardswish>;
    case OperationType::kSqrt:
      return lowerUnary<xnn_unary_square_root>;
    case OperationType::kRsqrt:
      return lowerUnary<xnn_unary_reciprocal_square_root>;
    case OperationType::kQuantize:
      return lowerUnary<xnn_unary_convert>;
    case OperationType::kDequantize:
      return lowerDequantize;
    case OperationType::kCast:
      return lowerCast;
    case OperationType::kReshape:
      return lowerRename;
    case OperationType::kSqueeze:
      return lowerRename;
    case OperationType::kExpandDims:
      return lowerRename;
    case OperationType::kConcatenation:
      return lowerConcatenation;
    case OperationType::kSplit:
      return lowerSplit;
    case OperationType::kTranspose:
      return lowerTranspose;
    case OperationType::kPad:
      return lowerPad;
    case OperationType::kMean:
      return lowerMean;
    case OperationType::kResizeBilinear:
      return lowerResizeBilinear;
    case OperationType::kScaledDotProductAttention:
      return lowerAttention;
    default:
      return nullptr;
  }
}

}  // namespace hearth::cpu
