// SPDX-License-Identifier: Apache-2.0
#include "ops/parts_rule.h"

namespace hearth::ops {

PartsRule partsRuleOf(OperationType type) {
  using Kind = PartsRule::Kind;
  switch (type) {
    case OperationType::kDequantize:
    case OperationType::kQuantize:
    case OperationType::kCast:
    case OperationType::kFloor:
    case OperationType::kCeil:
    case OperationType::kRound:
    case OperationType::kSign:
    case OperationType::kLogistic:
    case OperationType::kRelu:
    case OperationType::kRelu1:
    case OperationType::kRelu6:
    case OperationType::kRelu0To1:
    case OperationType::kTanh:
    case OperationType::kAbs:
    case OperationType::kExp:
    case OperationType::kLog:
    case OperationType::kNeg:
    case OperationType::kRsqrt:
    case OperationType::kSqrt:
    case OperationType::kSin:
    case OperationType::kCos:
    case OperationType::kElu:
    case OperationType::kHardSwish:
    case OperationType::kGelu:
    case OperationType::kLogicalNot:
    case OperationType::kZerosLike:
    case OperationType::kBucketize:
    case OperationType::kReal:
    case OperationType::kImag:
    case OperationType::kComplexAbs:
    case OperationType::kPad:
    case OperationType::kPadV2:
    case OperationType::kMirrorPad:
    case OperationType::kTile:
    case OperationType::kSlice:
      return {Kind::kKeep};
    case OperationType::kAdd:
    case OperationType::kMul:
    case OperationType::kSub:
    case OperationType::kDiv:
    case OperationType::kPow:
    case OperationType::kMaximum:
    case OperationType::kMinimum:
    case OperationType::kEqual:
    case OperationType::kNotEqual:
    case OperationType::kGreater:
    case OperationType::kGreaterEqual:
    case OperationType::kLess:
    case OperationType::kLessEqual:
    case OperationType::kLogicalAnd:
    case OperationType::kLogicalOr:
    case OperationType::kPrelu:
    case OperationType::kSelect:
    case OperationType::kSelectV2:
    case OperationType::kSquaredDifference:
    case OperationType::kFloorDiv:
    case OperationType::kFloorMod:
    case OperationType::kTruncatedDiv:
    case OperationType::kAtan2:
    case OperationType::kBitwiseXor:
    case OperationType::kRightShift:
    case OperationType::kBroadcastTo:
      return {Kind::kBroadcast};
    case OperationType::kConv2d:
    case OperationType::kDepthwiseConv2d:
    case OperationType::kGroupedConv2d:
    case OperationType::kTransposeConv2d:
    case OperationType::kConv3d:
    case OperationType::kConv3dTranspose:
    case OperationType::kAveragePool2d:
    case OperationType::kL2Pool2d:
    case OperationType::kMaxPool2d:
    case OperationType::kLocalResponseNormalization:
    case OperationType::kInstanceNormalization:
    case OperationType::kResizeBilinear:
    case OperationType::kResizeNearestNeighbor:
    case OperationType::kSpaceToDepth:
    case OperationType::kDepthToSpace:
    case OperationType::kSpaceToBatchNd:
    case OperationType::kBatchToSpaceNd:
    case OperationType::kEmbeddingLookup:
      return {Kind::kKeepBatch};
    case OperationType::kSoftmax:
    case OperationType::kLogSoftmax:
    case OperationType::kChannelShuffle:
      return {Kind::kKeepOffAxis, 2};
    case OperationType::kL2Normalization:
    case OperationType::kCumsum:
    case OperationType::kSplit:
      return {Kind::kKeepOffAxis, 1};
    case OperationType::kRmsNorm:
    case OperationType::kTopkV2:
      return {Kind::kKeepOffAxis};
    case OperationType::kReverse:
      return {Kind::kReverse, 1};
    case OperationType::kArgmax:
    case OperationType::kArgmin:
    case OperationType::kArgmax64:
    case OperationType::kArgmin64:
      return {Kind::kReduceOne, 1};
    case OperationType::kMean:
    case OperationType::kReduceAll:
    case OperationType::kReduceAny:
    case OperationType::kReduceMax:
    case OperationType::kReduceMin:
    case OperationType::kReduceProd:
    case OperationType::kReduceSum:
      return {Kind::kReduce, 1};
    case OperationType::kReshape:
      return {Kind::kReshape};
    case OperationType::kTranspose:
      return {Kind::kTranspose};
    case OperationType::kConcatenation:
      return {Kind::kConcatenate};
    case OperationType::kPack:
      return {Kind::kPack};
    case OperationType::kFullyConnected:
      return {Kind::kFullyConnected};
    case OperationType::kBatchMatmul:
      return {Kind::kMultiply};
    case OperationType::kGather:
      return {Kind::kGather};
    case OperationType::kRfft2d:
      return {Kind::kKeepOffLastTwo};
    case OperationType::kSqueeze:
    case OperationType::kExpandDims:
    case OperationType::kStridedSlice:
      return {Kind::kMoveInOrder};
    case OperationType::kLstm:
    case OperationType::kRnn:
    case OperationType::kSvdf:
    case OperationType::kQuantizedLstm:
    case OperationType::kQuantized16bitLstm:
    case OperationType::kUnidirectionalSequenceLstm:
    case OperationType::kUnidirectionalSequenceRnn:
    case OperationType::kBidirectionalSequenceLstm:
    case OperationType::kBidirectionalSequenceRnn:
    case OperationType::kQuantizedSequenceLstm:
      return {Kind::kRecur};
    case OperationType::kShape:
    case OperationType::kRank:
      return {Kind::kDropAll};
    default:
      return {Kind::kMix};
  }
}

}  // namespace hearth::ops
