// SPDX-License-Identifier: Apache-2.0
// The table of lowerings, and how arguments of operations become parameters of XNNPACK and of our
// kernels.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <vector>

#include "drivers/cpu/lowering/attention.h"
#include "drivers/cpu/lowering/batch_matmul.h"
#include "drivers/cpu/lowering/control_flow.h"
#include "drivers/cpu/lowering/convolution.h"
#include "drivers/cpu/lowering/declined.h"
#include "drivers/cpu/lowering/elementwise.h"
#include "drivers/cpu/lowering/float_functions.h"
#include "drivers/cpu/lowering/float_pairs.h"
#include "drivers/cpu/lowering/fully_connected.h"
#include "drivers/cpu/lowering/layout.h"
#include "drivers/cpu/lowering/log_softmax.h"
#include "drivers/cpu/lowering/normalization.h"
#include "drivers/cpu/lowering/pooling.h"
#include "drivers/cpu/lowering/quantized_softmax.h"
#include "drivers/cpu/lowering/sequence_lstm.h"
#include "drivers/cpu/lowering/shared_operations.h"
#include "drivers/cpu/lowering/transpose_convolution.h"
#include "drivers/cpu/lowering/unary_lookup_table.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "ops/concatenation.h"
#include "ops/conv_2d.h"
#include "ops/fully_connected.h"
#include "ops/pad.h"
#include "ops/pool_2d.h"
#include "ops/reduce.h"
#include "ops/resize.h"
#include "ops/slice.h"
#include "ops/softmax.h"
#include "ops/split.h"
#include "ops/transpose.h"
#include "ops/validation.h"

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

// Of 16-bit activations, which XNNPACK lacks.
bool isSymmetric16(PlanBuilder* builder) {
  return builder->operand(inputOf(builder, 0)).type == OperandType::kTensorQuant16Symm;
}

Result<bool> lowerConvolution(PlanBuilder* builder, const ops::Conv2dParameters& parameters,
                              bool isDepthwise) {
  if (parameters.isNchw) return builder->decline(kNchw);
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
  if (isSymmetric16(builder)) return lowerShared(builder);
  HEARTH_ASSIGN(const auto parameters, ops::parseDepthwiseConv2d(builder->context()));
  return lowerConvolution(builder, parameters, true);
}

Result<bool> lowerPool2d(PlanBuilder* builder) {
  if (isSymmetric16(builder)) return lowerShared(builder);
  HEARTH_ASSIGN(const auto parameters, ops::parsePool2d(builder->context()));
  if (parameters.isNchw) return builder->decline(kNchw);
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
  // The float32 average of src/ops reads each pixel in place and is used, except for a mean over
  // the whole image.
  const bool isGlobal = pooling.outputHeight == 1 && pooling.outputWidth == 1 &&
                        pooling.top + pooling.bottom + pooling.left + pooling.right == 0 &&
                        pooling.filterHeight == pooling.inputHeight &&
                        pooling.filterWidth == pooling.inputWidth;
  if (!pooling.isMaximum && !isGlobal &&
      builder->operand(pooling.input).type == OperandType::kTensorFloat32)
    return lowerShared(builder);
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
  if (builder->context().hasInput(4)) layer.blockScales = inputOf(builder, 4);
  return addFullyConnected(builder, layer);
}

Result<bool> lowerSoftmax(PlanBuilder* builder) {
  if (isSymmetric16(builder)) return lowerShared(builder);
  HEARTH_ASSIGN(const auto parameters, ops::parseSoftmax(builder->context()));
  if (parameters.axis + 1 != builder->context().inputs[0].rank())
    return builder->decline(kNotLastAxis);
  HEARTH_ASSIGN(const bool isDone,
                addSoftmax(builder, inputOf(builder, 0), outputOf(builder), parameters.beta));
  if (isDone) return true;
  return addQuantizedSoftmax(builder, inputOf(builder, 0), outputOf(builder), parameters.beta);
}

template <xnn_binary_operator kOperator>
Result<bool> lowerArithmetic(PlanBuilder* builder) {
  HEARTH_ASSIGN(const ops::FusedActivation activation, ops::parseActivation(builder->context(), 2));
  return addBinary(builder, kOperator, inputOf(builder, 0), inputOf(builder, 1), outputOf(builder),
                   activation);
}

// The operation that squares the current one's output, if it is the only reader.
std::optional<uint32_t> squareOf(PlanBuilder* builder) {
  const uint32_t output = outputOf(builder);
  const std::vector<uint32_t>& readers = builder->consumers(output);
  if (builder->isGraphOutput(output) || readers.size() != 2 || readers[0] != readers[1])
    return std::nullopt;
  const graph::Operation& reader = builder->operation(readers[0]);
  if (reader.type != OperationType::kMul || reader.inputs[0] != output ||
      reader.inputs[1] != output)
    return std::nullopt;
  return readers[0];
}

// A difference that is only squared is not written to memory: one node computes the square. Only
// for float32: quantised differences are rounded before they are squared.
Result<bool> lowerSub(PlanBuilder* builder) {
  HEARTH_ASSIGN(const ops::FusedActivation activation, ops::parseActivation(builder->context(), 2));
  const std::optional<uint32_t> square = squareOf(builder);
  if (square && activation == ops::FusedActivation::kNone &&
      builder->operand(outputOf(builder)).type == OperandType::kTensorFloat32 &&
      builder->canTakeOver(*square)) {
    const graph::Operation& operation = builder->operation(*square);
    const ops::OperationContext context =
        ops::makeContext(builder->model(), builder->subgraph(), operation);
    HEARTH_ASSIGN(const ops::FusedActivation last, ops::parseActivation(context, 2));
    HEARTH_ASSIGN(const bool isDone,
                  addBinary(builder, xnn_binary_squared_difference, inputOf(builder, 0),
                            inputOf(builder, 1), operation.outputs[0], last));
    if (isDone) {
      builder->takeOver(*square);
      return true;
    }
  }
  return lowerArithmetic<xnn_binary_subtract>(builder);
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

// float32 on our kernel; 8-bit numbers on XNNPACK, which has a table.
Result<bool> lowerAnyTanh(PlanBuilder* builder) {
  HEARTH_ASSIGN(const bool isDone, lowerTanh(builder));
  return isDone ? true : lowerUnary<xnn_unary_tanh>(builder);
}

template <ops::FusedActivation kActivation>
Result<bool> lowerClamp(PlanBuilder* builder) {
  return addClamp(builder, inputOf(builder, 0), outputOf(builder), kActivation);
}

// Types that XNNPACK lacks run on the kernel of src/ops, which is as fast.
Result<bool> lowerQuantize(PlanBuilder* builder) {
  HEARTH_ASSIGN(bool isDone, lowerByTable(builder));
  if (!isDone && builder->operand(inputOf(builder, 0)).type == OperandType::kTensorFloat32) {
    HEARTH_ASSIGN(isDone, lowerUnary<xnn_unary_convert>(builder));
  }
  return isDone ? true : lowerShared(builder);
}

Result<bool> lowerDequantize(PlanBuilder* builder) {
  HEARTH_ASSIGN(const bool isDone, lowerUnary<xnn_unary_convert>(builder));
  if (isDone) return true;
  switch (builder->operand(inputOf(builder, 0)).type) {
    case OperandType::kTensorQuant8Symm:
    case OperandType::kTensorQuant16Symm:
    case OperandType::kTensorQuant16Asymm:
    case OperandType::kTensorInt16:
      return lowerShared(builder);
    default:
      return false;
  }
}

Result<bool> lowerRelu0To1(PlanBuilder* builder) {
  xnn_unary_params params{};
  params.clamp = {0.0f, 1.0f};
  return addUnary(builder, xnn_unary_clamp, &params, inputOf(builder, 0), outputOf(builder));
}

// Lowers by kLowering; where that returns false, to the kernel of src/ops.
template <Lowering kLowering>
Result<bool> lowerOrShare(PlanBuilder* builder) {
  HEARTH_ASSIGN(const bool isDone, kLowering(builder));
  return isDone ? true : lowerShared(builder);
}

// Lowers by kLowering; where that returns false, to a look-up table.
template <Lowering kLowering>
Result<bool> lowerOrTable(PlanBuilder* builder) {
  HEARTH_ASSIGN(const bool isDone, kLowering(builder));
  return isDone ? true : lowerByTable(builder);
}

// Lowers to a look-up table, which is faster than XNNPACK's conversions and tables of 8-bit
// numbers; where there is none, by kLowering.
template <Lowering kLowering>
Result<bool> lowerByTableOr(PlanBuilder* builder) {
  HEARTH_ASSIGN(const bool isDone, lowerByTable(builder));
  return isDone ? true : kLowering(builder);
}

// Sums and products. Integers and quantised 16-bit numbers, which kLowering lacks, run on src/ops.
template <Lowering kLowering>
Result<bool> lowerArithmeticOrShare(PlanBuilder* builder) {
  HEARTH_ASSIGN(const bool isDone, kLowering(builder));
  if (isDone) return true;
  const OperandType type = builder->operand(inputOf(builder, 0)).type;
  const bool is16 = type == OperandType::kTensorQuant16Symm || type == OperandType::kTensorInt16;
  return is16 ? lowerShared(builder) : lowerNumbers(builder);
}

// An operation of numbers that XNNPACK lacks.
Result<bool> lowerNumbersAlone(PlanBuilder* builder) {
  HEARTH_ASSIGN(const bool isDone, lowerNumbers(builder));
  return isDone ? true : builder->decline("only float32 and integers have a faster kernel");
}

template <Lowering kLowering>
Result<bool> lowerOrShareNumbers(PlanBuilder* builder) {
  HEARTH_ASSIGN(const bool isDone, kLowering(builder));
  return isDone ? true : lowerNumbers(builder);
}

// MAXIMUM and MINIMUM. Types that XNNPACK lacks are compared as they are stored: integers, and
// quantised numbers of one scale.
template <xnn_binary_operator kOperator>
Result<bool> lowerSelecting(PlanBuilder* builder) {
  HEARTH_ASSIGN(const bool isDone, lowerPlainBinary<kOperator>(builder));
  if (isDone) return true;
  if (!ops::isSameQuantization(builder->operand(inputOf(builder, 0)),
                               builder->operand(outputOf(builder))))
    return builder->decline(kOtherScale);
  return lowerComparison(builder);
}

// Quantised squares are rounded once, in src/ops.
Result<bool> lowerSquaredDifference(PlanBuilder* builder) {
  const OperandType type = builder->operand(inputOf(builder, 0)).type;
  if (type == OperandType::kTensorFloat16) return builder->decline(kHalf);
  if (type != OperandType::kTensorFloat32) return lowerShared(builder);
  HEARTH_ASSIGN(const bool isDone, lowerPlainBinary<xnn_binary_squared_difference>(builder));
  return isDone ? true : lowerShared(builder);
}

// The same bytes in another shape; shape inference has checked the parameters.
Result<bool> lowerReshape(PlanBuilder* builder) {
  addReshape(builder, inputOf(builder, 0), outputOf(builder));
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

// Where begin or size are known only at run time, the shared kernel reads them then.
template <auto parse>
Result<bool> lowerSlice(PlanBuilder* builder) {
  const auto parameters = parse(builder->context());
  if (!parameters) return false;
  return addSlice(builder, inputOf(builder, 0), outputOf(builder), parameters->ranges);
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

// Only float32 goes to XNNPACK: its sums of 8-bit numbers are slower than ours.
Result<bool> lowerMean(PlanBuilder* builder) {
  HEARTH_ASSIGN(const auto parameters, ops::parseReduce(builder->context()));
  std::vector<uint32_t> axes;
  for (uint32_t i = 0; i < parameters.isReduced.size(); ++i)
    if (parameters.isReduced[i]) axes.push_back(i);
  return addMean(builder, inputOf(builder, 0), outputOf(builder), axes);
}

Result<bool> lowerResizeBilinear(PlanBuilder* builder) {
  HEARTH_ASSIGN(const auto parameters, ops::parseResize(builder->context()));
  if (parameters.isNchw) return builder->decline(kNchw);
  return addResizeBilinear(builder, inputOf(builder, 0), outputOf(builder), parameters.alignCorners,
                           parameters.halfPixelCenters);
}

Result<bool> lowerTransposed(PlanBuilder* builder) {
  return isSymmetric16(builder) ? lowerShared(builder) : lowerTransposeConv2d(builder);
}

Result<bool> lowerProduct(PlanBuilder* builder) {
  return isSymmetric16(builder) ? lowerShared(builder) : lowerBatchMatmul(builder);
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

struct Entry {
  OperationType type;
  Lowering lowering;
};

constexpr Entry kLowerings[] = {
    {OperationType::kConv2d, lowerConv2d},
    {OperationType::kGroupedConv2d, lowerGroupedConv2d},
    {OperationType::kDepthwiseConv2d, lowerDepthwiseConv2d},
    {OperationType::kAveragePool2d, lowerPool2d},
    {OperationType::kMaxPool2d, lowerPool2d},
    {OperationType::kFullyConnected, lowerFullyConnected},
    {OperationType::kSoftmax, lowerSoftmax},
    {OperationType::kLogSoftmax, lowerLogSoftmax},
    {OperationType::kAdd, lowerArithmeticOrShare<lowerArithmetic<xnn_binary_add>>},
    {OperationType::kSub, lowerArithmeticOrShare<lowerSub>},
    {OperationType::kMul, lowerArithmeticOrShare<lowerArithmetic<xnn_binary_multiply>>},
    {OperationType::kDiv, lowerOrShareNumbers<lowerArithmetic<xnn_binary_divide>>},
    {OperationType::kMaximum, lowerSelecting<xnn_binary_maximum>},
    {OperationType::kMinimum, lowerSelecting<xnn_binary_minimum>},
    {OperationType::kSquaredDifference, lowerSquaredDifference},
    {OperationType::kRelu, lowerOrTable<lowerClamp<ops::FusedActivation::kRelu>>},
    {OperationType::kRelu1, lowerOrTable<lowerClamp<ops::FusedActivation::kRelu1>>},
    {OperationType::kRelu6, lowerOrTable<lowerClamp<ops::FusedActivation::kRelu6>>},
    {OperationType::kLogistic, lowerByTableOr<lowerUnary<xnn_unary_sigmoid>>},
    {OperationType::kTanh, lowerByTableOr<lowerAnyTanh>},
    {OperationType::kAbs, lowerOrTable<lowerUnary<xnn_unary_abs>>},
    {OperationType::kNeg, lowerOrTable<lowerUnary<xnn_unary_negate>>},
    {OperationType::kFloor, lowerOrTable<lowerUnary<xnn_unary_floor>>},
    {OperationType::kHardSwish, lowerOrTable<lowerHardSwish>},
    {OperationType::kSqrt, lowerOrTable<lowerUnary<xnn_unary_square_root>>},
    {OperationType::kRsqrt, lowerOrTable<lowerUnary<xnn_unary_reciprocal_square_root>>},
    {OperationType::kQuantize, lowerQuantize},
    {OperationType::kDequantize, lowerDequantize},
    {OperationType::kCast, lowerShared},
    {OperationType::kSign, lowerOrTable<lowerOrShareNumbers<lowerSign>>},
    {OperationType::kReshape, lowerReshape},
    {OperationType::kIf, addIf},
    {OperationType::kWhile, addWhile},
    {OperationType::kSqueeze, lowerReshape},
    {OperationType::kExpandDims, lowerReshape},
    {OperationType::kConcatenation, lowerConcatenation},
    {OperationType::kSplit, lowerSplit},
    {OperationType::kTranspose, lowerOrShare<lowerTranspose>},
    {OperationType::kPad, lowerOrShare<lowerPad>},
    {OperationType::kCumsum, lowerShared},
    {OperationType::kTopkV2, lowerShared},
    {OperationType::kMean, lowerOrShare<lowerMean>},
    {OperationType::kResizeBilinear, lowerResizeBilinear},
    {OperationType::kScaledDotProductAttention, lowerAttention},
    {OperationType::kFloorDiv, lowerNumbersAlone},
    {OperationType::kFloorMod, lowerNumbersAlone},
    {OperationType::kTruncatedDiv, lowerNumbersAlone},
    {OperationType::kPow, lowerOrShareNumbers<lowerPow>},
    {OperationType::kAtan2, lowerOrShareNumbers<lowerAtan2>},
    {OperationType::kPrelu, lowerOrTable<lowerPlainBinary<xnn_binary_prelu>>},
    {OperationType::kEqual, lowerComparison},
    {OperationType::kNotEqual, lowerComparison},
    {OperationType::kLess, lowerComparison},
    {OperationType::kLessEqual, lowerComparison},
    {OperationType::kGreater, lowerComparison},
    {OperationType::kGreaterEqual, lowerComparison},
    {OperationType::kLogicalAnd, lowerShared},
    {OperationType::kLogicalOr, lowerShared},
    {OperationType::kLogicalNot, lowerShared},
    {OperationType::kReduceAll, lowerShared},
    {OperationType::kReduceAny, lowerShared},
    {OperationType::kReduceMax, lowerShared},
    {OperationType::kReduceMin, lowerShared},
    {OperationType::kReduceProd, lowerShared},
    {OperationType::kReduceSum, lowerShared},
    {OperationType::kTransposeConv2d, lowerTransposed},
    {OperationType::kSelect, lowerShared},
    {OperationType::kSelectV2, lowerShared},
    {OperationType::kCeil, lowerOrTable<lowerUnary<xnn_unary_ceiling>>},
    {OperationType::kRound, lowerOrTable<lowerUnary<xnn_unary_bankers_rounding>>},
    {OperationType::kLog, lowerOrTable<lowerUnary<xnn_unary_log>>},
    {OperationType::kElu, lowerOrTable<lowerElu>},
    {OperationType::kGelu, lowerOrTable<lowerGelu>},
    {OperationType::kExp, lowerOrTable<lowerExp>},
    {OperationType::kSin, lowerOrTable<lowerSin>},
    {OperationType::kCos, lowerOrTable<lowerCos>},
    {OperationType::kRelu0To1, lowerOrTable<lowerRelu0To1>},
    {OperationType::kSlice, lowerOrShare<lowerSlice<ops::parseSlice>>},
    {OperationType::kStridedSlice, lowerOrShare<lowerSlice<ops::parseStridedSlice>>},
    {OperationType::kPack, lowerShared},
    {OperationType::kTile, lowerShared},
    {OperationType::kBroadcastTo, lowerShared},
    {OperationType::kReverse, lowerShared},
    {OperationType::kReverseSequence, lowerShared},
    {OperationType::kConv3d, lowerShared},
    {OperationType::kConv3dTranspose, lowerShared},
    {OperationType::kRfft2d, lowerShared},
    {OperationType::kReal, lowerShared},
    {OperationType::kImag, lowerShared},
    {OperationType::kComplexAbs, lowerShared},
    {OperationType::kScatterNd, lowerShared},
    {OperationType::kSparseToDense, lowerShared},
    {OperationType::kL2Normalization, lowerShared},
    {OperationType::kL2Pool2d, lowerShared},
    {OperationType::kSvdf, lowerShared},
    {OperationType::kPadV2, lowerShared},
    {OperationType::kMirrorPad, lowerShared},
    {OperationType::kSpaceToDepth, lowerShared},
    {OperationType::kDepthToSpace, lowerShared},
    {OperationType::kSpaceToBatchNd, lowerShared},
    {OperationType::kBatchToSpaceNd, lowerShared},
    {OperationType::kGather, lowerShared},
    {OperationType::kGatherNd, lowerShared},
    {OperationType::kEmbeddingLookup, lowerEmbeddingLookup},
    {OperationType::kDynamicUpdateSlice, lowerDynamicUpdateSlice},
    {OperationType::kArgmax, lowerShared},
    {OperationType::kArgmin, lowerShared},
    {OperationType::kArgmax64, lowerShared},
    {OperationType::kArgmin64, lowerShared},
    {OperationType::kResizeNearestNeighbor, lowerShared},
    {OperationType::kRmsNorm, lowerRmsNorm},
    {OperationType::kGroupNorm, lowerGroupNorm},
    {OperationType::kBatchMatmul, lowerProduct},
    {OperationType::kQuantizedSequenceLstm, lowerQuantizedSequenceLstm},
};

}  // namespace

Lowering findLowering(OperationType type) {
  const auto* entry = std::ranges::find(kLowerings, type, &Entry::type);
  return entry == std::end(kLowerings) ? nullptr : entry->lowering;
}

}  // namespace hearth::cpu
