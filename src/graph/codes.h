// SPDX-License-Identifier: Apache-2.0
// Operand and operation codes: NNAPI's, value for value (NDK NeuralNetworksTypes.h, feature levels
// 1 to 7), and those of the extension `hearth.tflite`, for what .tflite files use and NNAPI lacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hearth::graph {

// Extension codes are (prefix << 16) | number, as in NNAPI. In the canonical model `hearth.tflite`
// always has this prefix; front ends translate the prefixes that they give to clients.
inline constexpr int32_t kTfliteExtensionPrefix = 1;
inline constexpr std::string_view kTfliteExtensionName = "hearth.tflite";
inline constexpr int32_t tfliteExtensionCode(int32_t number) {
  return (kTfliteExtensionPrefix << 16) | number;
}

// Whether an operand or operation code belongs to the extension of a driver, with a prefix of
// Model::extensions. Such codes are in none of the enumerations and tables below.
inline constexpr bool isDriverCode(int32_t code) {
  return (code >> 16) > kTfliteExtensionPrefix;
}

enum class OperandType : int32_t {
  kFloat32 = 0,
  kInt32 = 1,
  kUint32 = 2,
  kTensorFloat32 = 3,
  kTensorInt32 = 4,
  kTensorQuant8Asymm = 5,
  kBool = 6,
  kTensorQuant16Symm = 7,
  kTensorFloat16 = 8,
  kTensorBool8 = 9,
  kFloat16 = 10,
  kTensorQuant8SymmPerChannel = 11,
  kTensorQuant16Asymm = 12,
  kTensorQuant8Symm = 13,
  kTensorQuant8AsymmSigned = 14,
  kModel = 15,

  // Extension hearth.tflite.
  kTensorInt64 = tfliteExtensionCode(0),
  kTensorUint64 = tfliteExtensionCode(1),
  kTensorFloat64 = tfliteExtensionCode(2),
  kTensorInt16 = tfliteExtensionCode(3),
  kTensorUint16 = tfliteExtensionCode(4),
  kTensorUint32 = tfliteExtensionCode(5),
  kTensorInt4 = tfliteExtensionCode(6),
  kTensorComplex64 = tfliteExtensionCode(7),  // real and imaginary part, each a float32
  kTensorString = tfliteExtensionCode(8),     // a memory::StringHandle
};

enum class OperationType : int32_t {
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
  kHashtableLookup = 10,
  kL2Normalization = 11,
  kL2Pool2d = 12,
  kLocalResponseNormalization = 13,
  kLogistic = 14,
  kLshProjection = 15,
  kLstm = 16,
  kMaxPool2d = 17,
  kMul = 18,
  kRelu = 19,
  kRelu1 = 20,
  kRelu6 = 21,
  kReshape = 22,
  kResizeBilinear = 23,
  kRnn = 24,
  kSoftmax = 25,
  kSpaceToDepth = 26,
  kSvdf = 27,
  kTanh = 28,
  kBatchToSpaceNd = 29,
  kDiv = 30,
  kMean = 31,
  kPad = 32,
  kSpaceToBatchNd = 33,
  kSqueeze = 34,
  kStridedSlice = 35,
  kSub = 36,
  kTranspose = 37,
  kAbs = 38,
  kArgmax = 39,
  kArgmin = 40,
  kAxisAlignedBboxTransform = 41,
  kBidirectionalSequenceLstm = 42,
  kBidirectionalSequenceRnn = 43,
  kBoxWithNmsLimit = 44,
  kCast = 45,
  kChannelShuffle = 46,
  kDetectionPostprocessing = 47,
  kEqual = 48,
  kExp = 49,
  kExpandDims = 50,
  kGather = 51,
  kGenerateProposals = 52,
  kGreater = 53,
  kGreaterEqual = 54,
  kGroupedConv2d = 55,
  kHeatmapMaxKeypoint = 56,
  kInstanceNormalization = 57,
  kLess = 58,
  kLessEqual = 59,
  kLog = 60,
  kLogicalAnd = 61,
  kLogicalNot = 62,
  kLogicalOr = 63,
  kLogSoftmax = 64,
  kMaximum = 65,
  kMinimum = 66,
  kNeg = 67,
  kNotEqual = 68,
  kPadV2 = 69,
  kPow = 70,
  kPrelu = 71,
  kQuantize = 72,
  kQuantized16bitLstm = 73,
  kRandomMultinomial = 74,
  kReduceAll = 75,
  kReduceAny = 76,
  kReduceMax = 77,
  kReduceMin = 78,
  kReduceProd = 79,
  kReduceSum = 80,
  kRoiAlign = 81,
  kRoiPooling = 82,
  kRsqrt = 83,
  kSelect = 84,
  kSin = 85,
  kSlice = 86,
  kSplit = 87,
  kSqrt = 88,
  kTile = 89,
  kTopkV2 = 90,
  kTransposeConv2d = 91,
  kUnidirectionalSequenceLstm = 92,
  kUnidirectionalSequenceRnn = 93,
  kResizeNearestNeighbor = 94,
  kQuantizedLstm = 95,
  kIf = 96,
  kWhile = 97,
  kElu = 98,
  kHardSwish = 99,
  kFill = 100,
  kRank = 101,
  kBatchMatmul = 102,
  kPack = 103,
  kMirrorPad = 104,
  kReverse = 105,

  // Extension hearth.tflite; inputs and outputs are documented in src/ops beside the kernels.
  kQuantizedSequenceLstm = tfliteExtensionCode(0),
  kArgmax64 = tfliteExtensionCode(1),
  kArgmin64 = tfliteExtensionCode(2),
  kGelu = tfliteExtensionCode(3),
  kCos = tfliteExtensionCode(4),
  kDynamicUpdateSlice = tfliteExtensionCode(5),
  kGatherNd = tfliteExtensionCode(6),
  kSelectV2 = tfliteExtensionCode(7),
  kBroadcastTo = tfliteExtensionCode(8),
  kRmsNorm = tfliteExtensionCode(9),
  kGroupNorm = tfliteExtensionCode(10),
  kScaledDotProductAttention = tfliteExtensionCode(11),
  kTruncatedDiv = tfliteExtensionCode(12),
  kCeil = tfliteExtensionCode(13),
  kRound = tfliteExtensionCode(14),
  kSign = tfliteExtensionCode(15),
  kRelu0To1 = tfliteExtensionCode(16),
  kFloorDiv = tfliteExtensionCode(17),
  kFloorMod = tfliteExtensionCode(18),
  kAtan2 = tfliteExtensionCode(19),
  kCumsum = tfliteExtensionCode(20),
  kWhere = tfliteExtensionCode(21),
  kRange = tfliteExtensionCode(22),
  kShape = tfliteExtensionCode(23),
  kZerosLike = tfliteExtensionCode(24),
  kOneHot = tfliteExtensionCode(25),
  kScatterNd = tfliteExtensionCode(26),
  kSegmentSum = tfliteExtensionCode(27),
  kBroadcastArgs = tfliteExtensionCode(28),
  kConv3d = tfliteExtensionCode(29),
  kReverseSequence = tfliteExtensionCode(30),
  kTfliteDetectionPostprocess = tfliteExtensionCode(31),
  kNonMaxSuppression = tfliteExtensionCode(32),
  kUnsortedSegmentProd = tfliteExtensionCode(33),
  kUnsortedSegmentMax = tfliteExtensionCode(34),
  kUnsortedSegmentSum = tfliteExtensionCode(35),
  kUnsortedSegmentMin = tfliteExtensionCode(36),
  kSquaredDifference = tfliteExtensionCode(37),
  kRfft2d = tfliteExtensionCode(38),
  kReal = tfliteExtensionCode(39),
  kImag = tfliteExtensionCode(40),
  kComplexAbs = tfliteExtensionCode(41),
  kBitwiseXor = tfliteExtensionCode(42),
  kRightShift = tfliteExtensionCode(43),
  kBitcast = tfliteExtensionCode(44),
  kMatrixDiag = tfliteExtensionCode(45),
  kMatrixSetDiag = tfliteExtensionCode(46),
  kBucketize = tfliteExtensionCode(47),
  kUnique = tfliteExtensionCode(48),
  kCustom = tfliteExtensionCode(49),  // an operator that the program registered
  kConv3dTranspose = tfliteExtensionCode(50),
  kRandomUniform = tfliteExtensionCode(51),
  kRandomStandardNormal = tfliteExtensionCode(52),
  kMultinomial = tfliteExtensionCode(53),
  kSparseToDense = tfliteExtensionCode(54),
  kStringConstant = tfliteExtensionCode(55),
  kHashtableFind = tfliteExtensionCode(56),
  kWhitespaceTokenizer = tfliteExtensionCode(57),
  kNgrams = tfliteExtensionCode(58),
  kRaggedTensorToTensor = tfliteExtensionCode(59),
};

inline constexpr bool isDriverCode(OperandType type) {
  return isDriverCode(static_cast<int32_t>(type));
}
inline constexpr bool isDriverCode(OperationType type) {
  return isDriverCode(static_cast<int32_t>(type));
}

struct OperandTypeInfo {
  OperandType type;
  const char* name;      // NNAPI's name without the ANEURALNETWORKS_ prefix
  int32_t featureLevel;  // 1 to 7; 0 for extension types
  size_t elementSize;    // in bytes; 0 where it is not a whole number
  bool isScalar;
};

struct OperationTypeInfo {
  OperationType type;
  const char* name;
  int32_t featureLevel;  // 1 to 7; 0 for extension operations
};

// All known codes in the order of their values, NNAPI's first.
std::span<const OperandTypeInfo> operandTypes();
std::span<const OperationTypeInfo> operationTypes();

// Null for an unknown code.
const OperandTypeInfo* findOperandType(OperandType type);
const OperationTypeInfo* findOperationType(OperationType type);

// The name for messages; "operand type 1234" or "operation 1234" for an unknown code.
std::string nameOf(OperandType type);
std::string nameOf(OperationType type);

inline bool isScalar(OperandType type) {
  const OperandTypeInfo* info = findOperandType(type);
  return info != nullptr && info->isScalar;
}
// Whether the type has a scale (and a zero point).
bool isQuantized(OperandType type);
// Bytes of one element; 0 for unknown types, kModel and types of less than a byte. For types of
// drivers ask elementSize() of the operand.
size_t elementSize(OperandType type);

}  // namespace hearth::graph
