// SPDX-License-Identifier: Apache-2.0
#include "graph/codes.h"

#include <algorithm>
#include <array>

#include "base/format.h"

namespace hearth::graph {
namespace {

constexpr OperandTypeInfo kOperandTypes[] = {
    {OperandType::kFloat32, "FLOAT32", 1, 4, true},
    {OperandType::kInt32, "INT32", 1, 4, true},
    {OperandType::kUint32, "UINT32", 1, 4, true},
    {OperandType::kTensorFloat32, "TENSOR_FLOAT32", 1, 4, false},
    {OperandType::kTensorInt32, "TENSOR_INT32", 1, 4, false},
    {OperandType::kTensorQuant8Asymm, "TENSOR_QUANT8_ASYMM", 1, 1, false},
    {OperandType::kBool, "BOOL", 3, 1, true},
    {OperandType::kTensorQuant16Symm, "TENSOR_QUANT16_SYMM", 3, 2, false},
    {OperandType::kTensorFloat16, "TENSOR_FLOAT16", 3, 2, false},
    {OperandType::kTensorBool8, "TENSOR_BOOL8", 3, 1, false},
    {OperandType::kFloat16, "FLOAT16", 3, 2, true},
    {OperandType::kTensorQuant8SymmPerChannel, "TENSOR_QUANT8_SYMM_PER_CHANNEL", 3, 1, false},
    {OperandType::kTensorQuant16Asymm, "TENSOR_QUANT16_ASYMM", 3, 2, false},
    {OperandType::kTensorQuant8Symm, "TENSOR_QUANT8_SYMM", 3, 1, false},
    {OperandType::kTensorQuant8AsymmSigned, "TENSOR_QUANT8_ASYMM_SIGNED", 4, 1, false},
    {OperandType::kModel, "MODEL", 4, 0, true},
    {OperandType::kTensorInt64, "TENSOR_INT64", 0, 8, false},
    {OperandType::kTensorUint64, "TENSOR_UINT64", 0, 8, false},
    {OperandType::kTensorFloat64, "TENSOR_FLOAT64", 0, 8, false},
    {OperandType::kTensorInt16, "TENSOR_INT16", 0, 2, false},
    {OperandType::kTensorUint16, "TENSOR_UINT16", 0, 2, false},
    {OperandType::kTensorUint32, "TENSOR_UINT32", 0, 4, false},
    {OperandType::kTensorInt4, "TENSOR_INT4", 0, 0, false},
    {OperandType::kTensorComplex64, "TENSOR_COMPLEX64", 0, 8, false},
    {OperandType::kTensorString, "TENSOR_STRING", 0, 8, false},
};

// The position of a type in the table: NNAPI's come first, then the extension's, both without gaps.
constexpr size_t operandTypeIndex(OperandType type) {
  constexpr uint32_t kNnapiTypes = static_cast<uint32_t>(OperandType::kModel) + 1;
  const auto code = static_cast<uint32_t>(type);
  if (code < kNnapiTypes) return code;
  const uint32_t number = code - static_cast<uint32_t>(tfliteExtensionCode(0));
  return size_t{number} + kNnapiTypes;
}
static_assert(std::ranges::all_of(kOperandTypes, [](const OperandTypeInfo& info) {
  return &info == &kOperandTypes[operandTypeIndex(info.type)];
}));

constexpr OperationTypeInfo kOperationTypes[] = {
    {OperationType::kAdd, "ADD", 1},
    {OperationType::kAveragePool2d, "AVERAGE_POOL_2D", 1},
    {OperationType::kConcatenation, "CONCATENATION", 1},
    {OperationType::kConv2d, "CONV_2D", 1},
    {OperationType::kDepthwiseConv2d, "DEPTHWISE_CONV_2D", 1},
    {OperationType::kDepthToSpace, "DEPTH_TO_SPACE", 1},
    {OperationType::kDequantize, "DEQUANTIZE", 1},
    {OperationType::kEmbeddingLookup, "EMBEDDING_LOOKUP", 1},
    {OperationType::kFloor, "FLOOR", 1},
    {OperationType::kFullyConnected, "FULLY_CONNECTED", 1},
    {OperationType::kHashtableLookup, "HASHTABLE_LOOKUP", 1},
    {OperationType::kL2Normalization, "L2_NORMALIZATION", 1},
    {OperationType::kL2Pool2d, "L2_POOL_2D", 1},
    {OperationType::kLocalResponseNormalization, "LOCAL_RESPONSE_NORMALIZATION", 1},
    {OperationType::kLogistic, "LOGISTIC", 1},
    {OperationType::kLshProjection, "LSH_PROJECTION", 1},
    {OperationType::kLstm, "LSTM", 1},
    {OperationType::kMaxPool2d, "MAX_POOL_2D", 1},
    {OperationType::kMul, "MUL", 1},
    {OperationType::kRelu, "RELU", 1},
    {OperationType::kRelu1, "RELU1", 1},
    {OperationType::kRelu6, "RELU6", 1},
    {OperationType::kReshape, "RESHAPE", 1},
    {OperationType::kResizeBilinear, "RESIZE_BILINEAR", 1},
    {OperationType::kRnn, "RNN", 1},
    {OperationType::kSoftmax, "SOFTMAX", 1},
    {OperationType::kSpaceToDepth, "SPACE_TO_DEPTH", 1},
    {OperationType::kSvdf, "SVDF", 1},
    {OperationType::kTanh, "TANH", 1},
    {OperationType::kBatchToSpaceNd, "BATCH_TO_SPACE_ND", 2},
    {OperationType::kDiv, "DIV", 2},
    {OperationType::kMean, "MEAN", 2},
    {OperationType::kPad, "PAD", 2},
    {OperationType::kSpaceToBatchNd, "SPACE_TO_BATCH_ND", 2},
    {OperationType::kSqueeze, "SQUEEZE", 2},
    {OperationType::kStridedSlice, "STRIDED_SLICE", 2},
    {OperationType::kSub, "SUB", 2},
    {OperationType::kTranspose, "TRANSPOSE", 2},
    {OperationType::kAbs, "ABS", 3},
    {OperationType::kArgmax, "ARGMAX", 3},
    {OperationType::kArgmin, "ARGMIN", 3},
    {OperationType::kAxisAlignedBboxTransform, "AXIS_ALIGNED_BBOX_TRANSFORM", 3},
    {OperationType::kBidirectionalSequenceLstm, "BIDIRECTIONAL_SEQUENCE_LSTM", 3},
    {OperationType::kBidirectionalSequenceRnn, "BIDIRECTIONAL_SEQUENCE_RNN", 3},
    {OperationType::kBoxWithNmsLimit, "BOX_WITH_NMS_LIMIT", 3},
    {OperationType::kCast, "CAST", 3},
    {OperationType::kChannelShuffle, "CHANNEL_SHUFFLE", 3},
    {OperationType::kDetectionPostprocessing, "DETECTION_POSTPROCESSING", 3},
    {OperationType::kEqual, "EQUAL", 3},
    {OperationType::kExp, "EXP", 3},
    {OperationType::kExpandDims, "EXPAND_DIMS", 3},
    {OperationType::kGather, "GATHER", 3},
    {OperationType::kGenerateProposals, "GENERATE_PROPOSALS", 3},
    {OperationType::kGreater, "GREATER", 3},
    {OperationType::kGreaterEqual, "GREATER_EQUAL", 3},
    {OperationType::kGroupedConv2d, "GROUPED_CONV_2D", 3},
    {OperationType::kHeatmapMaxKeypoint, "HEATMAP_MAX_KEYPOINT", 3},
    {OperationType::kInstanceNormalization, "INSTANCE_NORMALIZATION", 3},
    {OperationType::kLess, "LESS", 3},
    {OperationType::kLessEqual, "LESS_EQUAL", 3},
    {OperationType::kLog, "LOG", 3},
    {OperationType::kLogicalAnd, "LOGICAL_AND", 3},
    {OperationType::kLogicalNot, "LOGICAL_NOT", 3},
    {OperationType::kLogicalOr, "LOGICAL_OR", 3},
    {OperationType::kLogSoftmax, "LOG_SOFTMAX", 3},
    {OperationType::kMaximum, "MAXIMUM", 3},
    {OperationType::kMinimum, "MINIMUM", 3},
    {OperationType::kNeg, "NEG", 3},
    {OperationType::kNotEqual, "NOT_EQUAL", 3},
    {OperationType::kPadV2, "PAD_V2", 3},
    {OperationType::kPow, "POW", 3},
    {OperationType::kPrelu, "PRELU", 3},
    {OperationType::kQuantize, "QUANTIZE", 3},
    {OperationType::kQuantized16bitLstm, "QUANTIZED_16BIT_LSTM", 3},
    {OperationType::kRandomMultinomial, "RANDOM_MULTINOMIAL", 3},
    {OperationType::kReduceAll, "REDUCE_ALL", 3},
    {OperationType::kReduceAny, "REDUCE_ANY", 3},
    {OperationType::kReduceMax, "REDUCE_MAX", 3},
    {OperationType::kReduceMin, "REDUCE_MIN", 3},
    {OperationType::kReduceProd, "REDUCE_PROD", 3},
    {OperationType::kReduceSum, "REDUCE_SUM", 3},
    {OperationType::kRoiAlign, "ROI_ALIGN", 3},
    {OperationType::kRoiPooling, "ROI_POOLING", 3},
    {OperationType::kRsqrt, "RSQRT", 3},
    {OperationType::kSelect, "SELECT", 3},
    {OperationType::kSin, "SIN", 3},
    {OperationType::kSlice, "SLICE", 3},
    {OperationType::kSplit, "SPLIT", 3},
    {OperationType::kSqrt, "SQRT", 3},
    {OperationType::kTile, "TILE", 3},
    {OperationType::kTopkV2, "TOPK_V2", 3},
    {OperationType::kTransposeConv2d, "TRANSPOSE_CONV_2D", 3},
    {OperationType::kUnidirectionalSequenceLstm, "UNIDIRECTIONAL_SEQUENCE_LSTM", 3},
    {OperationType::kUnidirectionalSequenceRnn, "UNIDIRECTIONAL_SEQUENCE_RNN", 3},
    {OperationType::kResizeNearestNeighbor, "RESIZE_NEAREST_NEIGHBOR", 3},
    {OperationType::kQuantizedLstm, "QUANTIZED_LSTM", 4},
    {OperationType::kIf, "IF", 4},
    {OperationType::kWhile, "WHILE", 4},
    {OperationType::kElu, "ELU", 4},
    {OperationType::kHardSwish, "HARD_SWISH", 4},
    {OperationType::kFill, "FILL", 4},
    {OperationType::kRank, "RANK", 4},
    {OperationType::kBatchMatmul, "BATCH_MATMUL", 6},
    {OperationType::kPack, "PACK", 6},
    {OperationType::kMirrorPad, "MIRROR_PAD", 7},
    {OperationType::kReverse, "REVERSE", 7},
    {OperationType::kQuantizedSequenceLstm, "QUANTIZED_SEQUENCE_LSTM", 0},
    {OperationType::kArgmax64, "ARGMAX_64", 0},
    {OperationType::kArgmin64, "ARGMIN_64", 0},
    {OperationType::kGelu, "GELU", 0},
    {OperationType::kCos, "COS", 0},
    {OperationType::kDynamicUpdateSlice, "DYNAMIC_UPDATE_SLICE", 0},
    {OperationType::kGatherNd, "GATHER_ND", 0},
    {OperationType::kSelectV2, "SELECT_V2", 0},
    {OperationType::kBroadcastTo, "BROADCAST_TO", 0},
    {OperationType::kRmsNorm, "RMS_NORM", 0},
    {OperationType::kGroupNorm, "GROUP_NORM", 0},
    {OperationType::kScaledDotProductAttention, "SCALED_DOT_PRODUCT_ATTENTION", 0},
    {OperationType::kTruncatedDiv, "TRUNCATED_DIV", 0},
    {OperationType::kCeil, "CEIL", 0},
    {OperationType::kRound, "ROUND", 0},
    {OperationType::kSign, "SIGN", 0},
    {OperationType::kRelu0To1, "RELU_0_TO_1", 0},
    {OperationType::kFloorDiv, "FLOOR_DIV", 0},
    {OperationType::kFloorMod, "FLOOR_MOD", 0},
    {OperationType::kAtan2, "ATAN2", 0},
    {OperationType::kCumsum, "CUMSUM", 0},
    {OperationType::kWhere, "WHERE", 0},
    {OperationType::kRange, "RANGE", 0},
    {OperationType::kShape, "SHAPE", 0},
    {OperationType::kZerosLike, "ZEROS_LIKE", 0},
    {OperationType::kOneHot, "ONE_HOT", 0},
    {OperationType::kScatterNd, "SCATTER_ND", 0},
    {OperationType::kSegmentSum, "SEGMENT_SUM", 0},
    {OperationType::kBroadcastArgs, "BROADCAST_ARGS", 0},
    {OperationType::kConv3d, "CONV_3D", 0},
    {OperationType::kReverseSequence, "REVERSE_SEQUENCE", 0},
    {OperationType::kTfliteDetectionPostprocess, "TFLITE_DETECTION_POSTPROCESS", 0},
    {OperationType::kNonMaxSuppression, "NON_MAX_SUPPRESSION", 0},
    {OperationType::kUnsortedSegmentProd, "UNSORTED_SEGMENT_PROD", 0},
    {OperationType::kUnsortedSegmentMax, "UNSORTED_SEGMENT_MAX", 0},
    {OperationType::kUnsortedSegmentSum, "UNSORTED_SEGMENT_SUM", 0},
    {OperationType::kUnsortedSegmentMin, "UNSORTED_SEGMENT_MIN", 0},
    {OperationType::kSquaredDifference, "SQUARED_DIFFERENCE", 0},
    {OperationType::kRfft2d, "RFFT2D", 0},
    {OperationType::kReal, "REAL", 0},
    {OperationType::kImag, "IMAG", 0},
    {OperationType::kComplexAbs, "COMPLEX_ABS", 0},
    {OperationType::kBitwiseXor, "BITWISE_XOR", 0},
    {OperationType::kRightShift, "RIGHT_SHIFT", 0},
    {OperationType::kBitcast, "BITCAST", 0},
    {OperationType::kMatrixDiag, "MATRIX_DIAG", 0},
    {OperationType::kMatrixSetDiag, "MATRIX_SET_DIAG", 0},
    {OperationType::kBucketize, "BUCKETIZE", 0},
    {OperationType::kUnique, "UNIQUE", 0},
    {OperationType::kCustom, "CUSTOM", 0},
    {OperationType::kConv3dTranspose, "CONV_3D_TRANSPOSE", 0},
    {OperationType::kRandomUniform, "RANDOM_UNIFORM", 0},
    {OperationType::kRandomStandardNormal, "RANDOM_STANDARD_NORMAL", 0},
    {OperationType::kMultinomial, "MULTINOMIAL", 0},
    {OperationType::kSparseToDense, "SPARSE_TO_DENSE", 0},
    {OperationType::kStringConstant, "STRING_CONSTANT", 0},
    {OperationType::kHashtableFind, "HASHTABLE_FIND", 0},
    {OperationType::kWhitespaceTokenizer, "WHITESPACE_TOKENIZER", 0},
    {OperationType::kNgrams, "NGRAMS", 0},
    {OperationType::kRaggedTensorToTensor, "RAGGED_TENSOR_TO_TENSOR", 0},
};

}  // namespace

std::span<const OperandTypeInfo> operandTypes() {
  return kOperandTypes;
}
std::span<const OperationTypeInfo> operationTypes() {
  return kOperationTypes;
}

// Indexed, since a start looks each operand up several times.
const OperandTypeInfo* findOperandType(OperandType type) {
  const size_t index = operandTypeIndex(type);
  return index < std::size(kOperandTypes) ? &kOperandTypes[index] : nullptr;
}
const OperationTypeInfo* findOperationType(OperationType type) {
  const auto* const it =
      std::ranges::lower_bound(kOperationTypes, type, {}, &OperationTypeInfo::type);
  return it != std::end(kOperationTypes) && it->type == type ? it : nullptr;
}

std::string nameOf(OperandType type) {
  const OperandTypeInfo* info = findOperandType(type);
  return info != nullptr ? info->name
                         : base::formatText("operand type {}", static_cast<int32_t>(type));
}

std::string nameOf(OperationType type) {
  const OperationTypeInfo* info = findOperationType(type);
  return info != nullptr ? info->name
                         : base::formatText("operation {}", static_cast<int32_t>(type));
}

bool isQuantized(OperandType type) {
  switch (type) {
    case OperandType::kTensorQuant8Asymm:
    case OperandType::kTensorQuant8AsymmSigned:
    case OperandType::kTensorQuant8Symm:
    case OperandType::kTensorQuant8SymmPerChannel:
    case OperandType::kTensorQuant16Symm:
    case OperandType::kTensorQuant16Asymm:
      return true;
    default:
      return false;
  }
}

size_t elementSize(OperandType type) {
  const OperandTypeInfo* info = findOperandType(type);
  return info != nullptr ? info->elementSize : 0;
}

}  // namespace hearth::graph
