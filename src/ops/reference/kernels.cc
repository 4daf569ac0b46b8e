// SPDX-License-Identifier: Apache-2.0
#include "ops/reference/kernels.h"

#include <algorithm>
#include <iterator>

namespace hearth::ops::reference {
namespace {

struct Entry {
  OperationType type;
  Kernel kernel;
};

constexpr Entry kKernels[] = {
    {OperationType::kAdd, computeBinary},
    {OperationType::kAveragePool2d, pool},
    {OperationType::kConcatenation, concatenate},
    {OperationType::kConv2d, convolve},
    {OperationType::kDepthwiseConv2d, convolveDepthwise},
    {OperationType::kDepthToSpace, spaceToDepth},
    {OperationType::kDequantize, computeUnary},
    {OperationType::kEmbeddingLookup, lookUpEmbeddings},
    {OperationType::kFloor, computeUnary},
    {OperationType::kFullyConnected, connectFully},
    {OperationType::kHashtableLookup, lookUpHashtable},
    {OperationType::kL2Normalization, normalizeLength},
    {OperationType::kL2Pool2d, pool},
    {OperationType::kLocalResponseNormalization, normalizeResponse},
    {OperationType::kLogistic, computeUnary},
    {OperationType::kLstm, stepLstm},
    {OperationType::kMaxPool2d, pool},
    {OperationType::kMul, computeBinary},
    {OperationType::kRelu, computeUnary},
    {OperationType::kRelu1, computeUnary},
    {OperationType::kRelu6, computeUnary},
    {OperationType::kReshape, reshape},
    {OperationType::kResizeBilinear, resizeBilinear},
    {OperationType::kRnn, stepRnn},
    {OperationType::kSoftmax, softmax},
    {OperationType::kSpaceToDepth, spaceToDepth},
    {OperationType::kSvdf, runSvdf},
    {OperationType::kTanh, computeUnary},
    {OperationType::kBatchToSpaceNd, spaceToBatch},
    {OperationType::kDiv, computeBinary},
    {OperationType::kMean, reduce},
    {OperationType::kPad, pad},
    {OperationType::kSpaceToBatchNd, spaceToBatch},
    {OperationType::kSqueeze, reshape},
    {OperationType::kStridedSlice, slice},
    {OperationType::kSub, computeBinary},
    {OperationType::kTranspose, transpose},
    {OperationType::kAbs, computeUnary},
    {OperationType::kArgmax, findPlaces},
    {OperationType::kArgmin, findPlaces},
    {OperationType::kBidirectionalSequenceLstm, runLstmInBothDirections},
    {OperationType::kBidirectionalSequenceRnn, runRnnInBothDirections},
    {OperationType::kCast, cast},
    {OperationType::kChannelShuffle, shuffleChannels},
    {OperationType::kEqual, compare},
    {OperationType::kExp, computeUnary},
    {OperationType::kExpandDims, reshape},
    {OperationType::kGather, gather},
    {OperationType::kGreater, compare},
    {OperationType::kGreaterEqual, compare},
    {OperationType::kGroupedConv2d, convolve},
    {OperationType::kInstanceNormalization, normalizeInstances},
    {OperationType::kLess, compare},
    {OperationType::kLessEqual, compare},
    {OperationType::kLog, computeUnary},
    {OperationType::kLogicalAnd, combineLogically},
    {OperationType::kLogicalNot, negateLogically},
    {OperationType::kLogicalOr, combineLogically},
    {OperationType::kLogSoftmax, softmax},
    {OperationType::kMaximum, computeBinary},
    {OperationType::kMinimum, computeBinary},
    {OperationType::kNeg, computeUnary},
    {OperationType::kNotEqual, compare},
    {OperationType::kPadV2, pad},
    {OperationType::kPow, computeBinary},
    {OperationType::kPrelu, rectifyParametrically},
    {OperationType::kQuantize, computeUnary},
    {OperationType::kReduceAll, reduce},
    {OperationType::kReduceAny, reduce},
    {OperationType::kReduceMax, reduce},
    {OperationType::kReduceMin, reduce},
    {OperationType::kReduceProd, reduce},
    {OperationType::kReduceSum, reduce},
    {OperationType::kRoiAlign, alignRegions},
    {OperationType::kRoiPooling, poolRegions},
    {OperationType::kRsqrt, computeUnary},
    {OperationType::kSelect, select},
    {OperationType::kSin, computeUnary},
    {OperationType::kSlice, slice},
    {OperationType::kSplit, split},
    {OperationType::kSqrt, computeUnary},
    {OperationType::kTile, tile},
    {OperationType::kTopkV2, findLargest},
    {OperationType::kTransposeConv2d, convolveTransposed},
    {OperationType::kUnidirectionalSequenceLstm, runLstmSequence},
    {OperationType::kUnidirectionalSequenceRnn, runRnnSequence},
    {OperationType::kResizeNearestNeighbor, resizeNearest},
    {OperationType::kElu, computeUnary},
    {OperationType::kHardSwish, computeUnary},
    {OperationType::kFill, fill},
    {OperationType::kRank, findRank},
    {OperationType::kBatchMatmul, multiplyMatrices},
    {OperationType::kPack, pack},
    {OperationType::kMirrorPad, padMirrored},
    {OperationType::kReverse, reverse},
    {OperationType::kArgmax64, findPlaces},
    {OperationType::kArgmin64, findPlaces},
    {OperationType::kGelu, computeUnary},
    {OperationType::kCos, computeUnary},
    {OperationType::kDynamicUpdateSlice, updateSlice},
    {OperationType::kGatherNd, gatherNd},
    {OperationType::kSelectV2, select},
    {OperationType::kBroadcastTo, broadcastTo},
    {OperationType::kRmsNorm, normalizeMeanSquare},
    {OperationType::kGroupNorm, normalizeGroups},
    {OperationType::kScaledDotProductAttention, attend},
    {OperationType::kTruncatedDiv, computeBinary},
    {OperationType::kCeil, computeUnary},
    {OperationType::kRound, computeUnary},
    {OperationType::kSign, computeUnary},
    {OperationType::kRelu0To1, computeUnary},
    {OperationType::kFloorDiv, computeBinary},
    {OperationType::kFloorMod, computeBinary},
    {OperationType::kAtan2, computeBinary},
    {OperationType::kCumsum, sumUp},
    {OperationType::kWhere, findNonZeros},
    {OperationType::kRange, makeRange},
    {OperationType::kShape, findShape},
    {OperationType::kZerosLike, fillWithZeros},
    {OperationType::kOneHot, encodeOneHot},
    {OperationType::kScatterNd, scatterNd},
    {OperationType::kSegmentSum, sumSegments},
    {OperationType::kBroadcastArgs, broadcastArguments},
    {OperationType::kConv3d, convolve3d},
    {OperationType::kReverseSequence, reverseSequence},
    {OperationType::kUnsortedSegmentProd, combineSegments},
    {OperationType::kUnsortedSegmentMax, combineSegments},
    {OperationType::kUnsortedSegmentSum, combineSegments},
    {OperationType::kUnsortedSegmentMin, combineSegments},
};

// Integer LSTMs, whose formulas are sequences of roundings; what finds and filters boxes, and what
// depends on random numbers or hashes.
constexpr OperationType kSharedOperations[] = {
    OperationType::kLshProjection,      OperationType::kAxisAlignedBboxTransform,
    OperationType::kBoxWithNmsLimit,    OperationType::kDetectionPostprocessing,
    OperationType::kGenerateProposals,  OperationType::kHeatmapMaxKeypoint,
    OperationType::kQuantized16bitLstm, OperationType::kRandomMultinomial,
    OperationType::kQuantizedLstm,      OperationType::kQuantizedSequenceLstm,
    OperationType::kNonMaxSuppression,  OperationType::kTfliteDetectionPostprocess,
};

}  // namespace

Kernel findKernel(OperationType type) {
  const auto* const found = std::ranges::find(kKernels, type, &Entry::type);
  return found != std::end(kKernels) ? found->kernel : nullptr;
}

std::span<const OperationType> sharedOperations() {
  return kSharedOperations;
}

}  // namespace hearth::ops::reference
