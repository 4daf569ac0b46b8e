// SPDX-License-Identifier: Apache-2.0
// Numbers of TensorFlow Lite's built-in operations, as in files, and the version of TensorFlow that
// brought each group of them.
#pragma once

#include <cstdint>

namespace hearth::tflite_abi {

enum class Builtin : int32_t {
  kAdd = 0,
  kAveragePool2d = 1,
  kConcatenation = 2,
  kConv2d = 3,
  kDepthwiseConv2d = 4,
  kDepthToSpace = 5,
  kDequantize = 6,
  kEmbeddingLookup = 7,
  kFloor = 8,
  kFullyConnected = 9,
  kL2Normalization = 11,
  kL2Pool2d = 12,
  kLocalResponseNormalization = 13,
  kLogistic = 14,
  kLstm = 16,
  kMaxPool2d = 17,
  kMul = 18,
  kRelu = 19,
  kReluN1To1 = 20,
  kRelu6 = 21,
  kReshape = 22,
  kResizeBilinear = 23,
  kRnn = 24,
  kSoftmax = 25,
  kSpaceToDepth = 26,
  kSvdf = 27,
  kTanh = 28,
  kCustom = 32,
  kPad = 34,
  kUnidirectionalSequenceRnn = 35,
  kGather = 36,
  kBatchToSpaceNd = 37,
  kSpaceToBatchNd = 38,
  kTranspose = 39,
  kMean = 40,
  kSub = 41,
  kDiv = 42,
  kUnidirectionalSequenceLstm = 44,
  kStridedSlice = 45,
  kBidirectionalSequenceRnn = 46,
  kExp = 47,
  kTopkV2 = 48,
  kSplit = 49,
  kLogSoftmax = 50,
  kDelegate = 51,
  kBidirectionalSequenceLstm = 52,
  kCast = 53,
  kPrelu = 54,
  kMaximum = 55,
  kArgMax = 56,
  kMinimum = 57,
  kLess = 58,
  kNeg = 59,
  kPadV2 = 60,
  kGreater = 61,
  kGreaterEqual = 62,
  kLessEqual = 63,
  kSelect = 64,
  kSlice = 65,
  kSin = 66,
  kTransposeConv = 67,
  kTile = 69,
  kEqual = 71,
  kNotEqual = 72,
  kLog = 73,
  kSum = 74,
  kSqrt = 75,
  kRsqrt = 76,
  kPow = 78,
  kArgMin = 79,
  kReduceProd = 81,
  kReduceMax = 82,
  kPack = 83,
  kLogicalOr = 84,
  kLogicalAnd = 86,
  kLogicalNot = 87,
  kReduceMin = 89,
  kFloorDiv = 90,
  kReduceAny = 91,
  kZerosLike = 93,
  kFloorMod = 95,
  kResizeNearestNeighbor = 97,
  kSquaredDifference = 99,
  kMirrorPad = 100,
  kAbs = 101,
  kCeil = 104,
  kReverseV2 = 105,
  kGatherNd = 107,
  kCos = 108,
  kElu = 111,
  kQuantize = 114,
  kRound = 116,
  kHardSwish = 117,
  kSelectV2 = 123,
  kBatchMatmul = 126,
  kCumsum = 128,
  kBroadcastTo = 130,
  kReduceAll = 140,
  kGelu = 150,
  kDynamicUpdateSlice = 151,
  kRelu0To1 = 152,
  kAtan2 = 156,
  kSign = 158,
};

// A version of TensorFlow, 2.MINOR, that a delegate's structures are of.
struct TensorflowMinor {
  int32_t minor = kNewest;
  static constexpr int32_t kOldest = 3;
  static constexpr int32_t kNewest = 20;
};

// The first minor version that has the operation; kOldest for those that are older.
constexpr int32_t firstMinorWith(Builtin code) {
  constexpr struct {
    Builtin first;
    int32_t minor;
  } kGroups[] = {
      {Builtin::kSign, 12}, {Builtin::kAtan2, 10},    {Builtin::kRelu0To1, 9},
      {Builtin::kGelu, 8},  {Builtin::kReduceAll, 6}, {Builtin::kCumsum, 4},
  };
  for (const auto& group : kGroups)
    if (code >= group.first) return group.minor;
  return TensorflowMinor::kOldest;
}

}  // namespace hearth::tflite_abi
