// SPDX-License-Identifier: Apache-2.0
// What TfLiteNode::builtin_data points to for the operations whose parameters Hearth reads, by
// TensorFlow Lite's documented declarations. The runtime's structures grow at their ends: the ones
// here end where those of TensorFlow Lite 2.8 do, and fields that are newer are in structures of
// their own, which may be read only from the operation's version on that brought them.
#pragma once

#include <cstdint>

#include "tflite_abi/structures.h"

namespace hearth::tflite_abi {

// Values of the runtime's TfLitePadding and TfLiteMirrorPaddingMode; those of a file are one less.
inline constexpr int32_t kNoPadding = 0;

struct ConvParams {
  int32_t padding, strideWidth, strideHeight, activation, dilationWidth, dilationHeight;
};
struct DepthwiseConvParams {
  int32_t padding, strideWidth, strideHeight, depthMultiplier, activation, dilationWidth,
      dilationHeight;
};
struct TransposeConvParams {
  int32_t padding, strideWidth, strideHeight;
};
// From version 4 on.
struct TransposeConvParamsV4 {
  TransposeConvParams first;
  int32_t activation;
};
struct Conv3dParams {
  int32_t padding, strideWidth, strideHeight, strideDepth, dilationWidth, dilationHeight,
      dilationDepth, activation;
};
struct PoolParams {
  int32_t padding, strideWidth, strideHeight, filterWidth, filterHeight, activation;
};
struct FullyConnectedParams {
  int32_t activation, weightsFormat;
  bool keepDimensions, isAsymmetric;
};
struct BatchMatMulParams {
  bool adjointX, adjointY, isAsymmetric;
};
// ADD, SUB, MUL, DIV, L2_NORMALIZATION.
struct ActivationParams {
  int32_t activation;
};
struct LocalResponseNormalizationParams {
  int32_t radius;
  float bias, alpha, beta;
};
struct GeluParams {
  bool isApproximate;
};
// SOFTMAX and LEAKY_RELU.
struct FloatParams {
  float value;
};
// From and to numbers of types (TfLiteType).
struct CastParams {
  int32_t from, to;
};
struct GatherParams {
  int32_t axis, batchDimensions;
};
struct BucketizeParams {
  int32_t count;
  const float* boundaries;
};
// ONE_HOT, SPACE_TO_DEPTH, DEPTH_TO_SPACE, LSH_PROJECTION, MIRROR_PAD, SPLIT, SPLIT_V, UNIQUE.
struct IntParams {
  int32_t value;
};
struct SvdfParams {
  int32_t rank, activation;
  bool isAsymmetric;
};
struct RnnParams {
  int32_t activation;
  bool isAsymmetric;
};
struct SequenceRnnParams {
  bool isTimeMajor;
  int32_t activation;
  bool isAsymmetric;
};
struct BidirectionalRnnParams {
  bool isTimeMajor;
  int32_t activation;
  bool isMerged, isAsymmetric;
};
struct LstmParams {
  int32_t activation;
  float cellClip, projectionClip;
  int32_t kernel;
  bool isAsymmetric;
};
struct SequenceLstmParams {
  int32_t activation;
  float cellClip, projectionClip;
  bool isTimeMajor, isAsymmetric;
};
// From version 4 on.
struct SequenceLstmParamsV4 {
  int32_t activation;
  float cellClip, projectionClip;
  bool isTimeMajor, isAsymmetric, isDiagonal;
};
struct BidirectionalLstmParams {
  int32_t activation;
  float cellClip, projectionClip;
  bool isMerged, isTimeMajor, isAsymmetric;
};
struct ReducerParams {
  bool keepDimensions;
};
struct CumsumParams {
  bool isExclusive, isReverse;
};
struct ResizeParams {
  bool alignsCorners, hasHalfPixelCenters;
};
inline constexpr int32_t kMostParamDimensions = 8;
// RESHAPE and SQUEEZE.
struct DimensionsParams {
  int32_t values[kMostParamDimensions];
  int32_t count;
};
struct ConcatenationParams {
  int32_t axis, activation;
};
// PACK and UNPACK.
struct PackParams {
  int32_t count, axis;
};
struct StridedSliceParams {
  int32_t beginMask, endMask, ellipsisMask, newAxisMask, shrinkAxisMask;
};
// From version 8 on.
struct StridedSliceParamsV8 {
  StridedSliceParams first;
  bool isOffset;
};
struct CompositeParams {
  const char* name;
  int32_t subgraph;
  int32_t version;
  const uint8_t* attributes;
  size_t attributeBytes;
};
struct ReverseSequenceParams {
  int32_t sequenceDimension, batchDimension;
};

static_assert(sizeof(ConvParams) == 24);
static_assert(sizeof(DepthwiseConvParams) == 28);
static_assert(offsetof(TransposeConvParamsV4, activation) == 12);
static_assert(sizeof(Conv3dParams) == 32);
static_assert(offsetof(PoolParams, activation) == 20);
static_assert(offsetof(FullyConnectedParams, isAsymmetric) == 9);
static_assert(offsetof(BucketizeParams, boundaries) == 8);
static_assert(offsetof(SequenceRnnParams, isAsymmetric) == 8);
static_assert(offsetof(BidirectionalRnnParams, isAsymmetric) == 9);
static_assert(offsetof(LstmParams, isAsymmetric) == 16);
static_assert(offsetof(SequenceLstmParamsV4, isDiagonal) == 14);
static_assert(offsetof(BidirectionalLstmParams, isAsymmetric) == 14);
static_assert(offsetof(DimensionsParams, count) == 32);
static_assert(offsetof(StridedSliceParamsV8, isOffset) == 20);
static_assert(offsetof(CompositeParams, attributes) == 16);
static_assert(offsetof(CompositeParams, attributeBytes) == 24);

}  // namespace hearth::tflite_abi
