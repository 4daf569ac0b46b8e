// SPDX-License-Identifier: Apache-2.0
#include "frontends/delegate/known_operations.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "tflite_abi/builtin_params.h"

namespace hearth::delegate {
namespace {

namespace schema = tflite::schema;
using flatbuffers::FlatBufferBuilder;
using schema::ActivationFunctionType;
using schema::BuiltinOperator;
using schema::BuiltinOptions;

// A value of an enumeration of files, which are numbers of 8 bits; others become one that none has.
template <typename Enumeration>
Enumeration enumeration(int64_t value) {
  constexpr int64_t kLargest = std::numeric_limits<int8_t>::max();
  return static_cast<Enumeration>(std::clamp<int64_t>(value, -1, kLargest));
}

ActivationFunctionType activation(int32_t value) {
  return enumeration<ActivationFunctionType>(value);
}

schema::Padding padding(int32_t value) {
  return enumeration<schema::Padding>(int64_t{value} - 1);
}

// The writer of a table that `write` makes.
template <typename Write>
Options options(BuiltinOptions type, Write write) {
  return {type, [write](FlatBufferBuilder& builder) {
            return write(builder).Union();
          }};
}

Options readConv(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::ConvParams>();
  return options(BuiltinOptions::Conv2DOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateConv2DOptions(builder, padding(p.padding), p.strideWidth, p.strideHeight,
                                       activation(p.activation), p.dilationWidth, p.dilationHeight);
  });
}

Options readDepthwiseConv(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::DepthwiseConvParams>();
  return options(BuiltinOptions::DepthwiseConv2DOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateDepthwiseConv2DOptions(
        builder, padding(p.padding), p.strideWidth, p.strideHeight, p.depthMultiplier,
        activation(p.activation), p.dilationWidth, p.dilationHeight);
  });
}

Options readTransposeConv(const Parameters& parameters) {
  tflite_abi::TransposeConvParamsV4 p{};
  if (parameters.version >= 4)
    p = parameters.as<tflite_abi::TransposeConvParamsV4>();
  else
    p.first = parameters.as<tflite_abi::TransposeConvParams>();
  return options(BuiltinOptions::TransposeConvOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateTransposeConvOptions(builder, padding(p.first.padding),
                                              p.first.strideWidth, p.first.strideHeight,
                                              activation(p.activation));
  });
}

Options readConv3d(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::Conv3dParams>();
  return options(BuiltinOptions::Conv3DOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateConv3DOptions(builder, padding(p.padding), p.strideDepth, p.strideWidth,
                                       p.strideHeight, activation(p.activation), p.dilationDepth,
                                       p.dilationWidth, p.dilationHeight);
  });
}

Options readPool(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::PoolParams>();
  return options(BuiltinOptions::Pool2DOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreatePool2DOptions(builder, padding(p.padding), p.strideWidth, p.strideHeight,
                                       p.filterWidth, p.filterHeight, activation(p.activation));
  });
}

Options readFullyConnected(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::FullyConnectedParams>();
  return options(BuiltinOptions::FullyConnectedOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateFullyConnectedOptions(
        builder, activation(p.activation),
        enumeration<schema::FullyConnectedWeightsFormat>(p.weightsFormat), p.keepDimensions,
        p.isAsymmetric);
  });
}

Options readBatchMatMul(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::BatchMatMulParams>();
  return options(BuiltinOptions::BatchMatMulOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateBatchMatMulOptions(builder, p.adjointX, p.adjointY, p.isAsymmetric);
  });
}

// A table whose first field is the activation.
template <BuiltinOptions kType, typename Builder>
Options readActivation(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::ActivationParams>();
  return options(kType, [p](FlatBufferBuilder& builder) {
    Builder table(builder);
    table.add_fused_activation_function(activation(p.activation));
    return table.Finish();
  });
}

Options readLocalResponseNormalization(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::LocalResponseNormalizationParams>();
  return options(BuiltinOptions::LocalResponseNormalizationOptions,
                 [p](FlatBufferBuilder& builder) {
                   return schema::CreateLocalResponseNormalizationOptions(builder, p.radius, p.bias,
                                                                          p.alpha, p.beta);
                 });
}

Options readGelu(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::GeluParams>();
  return options(BuiltinOptions::GeluOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateGeluOptions(builder, p.isApproximate);
  });
}

Options readSoftmax(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::FloatParams>();
  return options(BuiltinOptions::SoftmaxOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateSoftmaxOptions(builder, p.value);
  });
}

Options readLeakyRelu(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::FloatParams>();
  return options(BuiltinOptions::LeakyReluOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateLeakyReluOptions(builder, p.value);
  });
}

Options readGather(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::GatherParams>();
  return options(BuiltinOptions::GatherOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateGatherOptions(builder, p.axis, p.batchDimensions);
  });
}

Options readBucketize(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::BucketizeParams>();
  std::vector<float> boundaries;
  if (p.boundaries != nullptr && p.count > 0)
    boundaries.assign(p.boundaries, p.boundaries + p.count);
  return options(BuiltinOptions::BucketizeOptions,
                 [list = std::move(boundaries)](FlatBufferBuilder& builder) {
                   return schema::CreateBucketizeOptionsDirect(builder, &list);
                 });
}

Options readOneHot(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::IntParams>();
  return options(BuiltinOptions::OneHotOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateOneHotOptions(builder, p.value);
  });
}

Options readLshProjection(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::IntParams>();
  return options(BuiltinOptions::LSHProjectionOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateLSHProjectionOptions(builder,
                                              enumeration<schema::LSHProjectionType>(p.value));
  });
}

Options readMirrorPad(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::IntParams>();
  return options(BuiltinOptions::MirrorPadOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateMirrorPadOptions(builder,
                                          enumeration<schema::MirrorPadMode>(int64_t{p.value} - 1));
  });
}

template <BuiltinOptions kType, typename Builder>
Options readBlockSize(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::IntParams>();
  return options(kType, [p](FlatBufferBuilder& builder) {
    Builder table(builder);
    table.add_block_size(p.value);
    return table.Finish();
  });
}

template <BuiltinOptions kType, typename Builder>
Options readSplits(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::IntParams>();
  return options(kType, [p](FlatBufferBuilder& builder) {
    Builder table(builder);
    table.add_num_splits(p.value);
    return table.Finish();
  });
}

Options readUnique(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::IntParams>();
  return options(BuiltinOptions::UniqueOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateUniqueOptions(
        builder, p.value == kTfLiteInt64 ? schema::TensorType::INT64 : schema::TensorType::INT32);
  });
}

Options readSvdf(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::SvdfParams>();
  return options(BuiltinOptions::SVDFOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateSVDFOptions(builder, p.rank, activation(p.activation), p.isAsymmetric);
  });
}

Options readRnn(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::RnnParams>();
  return options(BuiltinOptions::RNNOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateRNNOptions(builder, activation(p.activation), p.isAsymmetric);
  });
}

Options readSequenceRnn(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::SequenceRnnParams>();
  return options(BuiltinOptions::SequenceRNNOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateSequenceRNNOptions(builder, p.isTimeMajor, activation(p.activation),
                                            p.isAsymmetric);
  });
}

Options readBidirectionalRnn(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::BidirectionalRnnParams>();
  return options(BuiltinOptions::BidirectionalSequenceRNNOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateBidirectionalSequenceRNNOptions(
        builder, p.isTimeMajor, activation(p.activation), p.isMerged, p.isAsymmetric);
  });
}

Options readLstm(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::LstmParams>();
  return options(BuiltinOptions::LSTMOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateLSTMOptions(builder, activation(p.activation), p.cellClip,
                                     p.projectionClip,
                                     enumeration<schema::LSTMKernelType>(p.kernel), p.isAsymmetric);
  });
}

Options readSequenceLstm(const Parameters& parameters) {
  tflite_abi::SequenceLstmParamsV4 p{};
  if (parameters.version >= 4) {
    p = parameters.as<tflite_abi::SequenceLstmParamsV4>();
  } else {
    const auto first = parameters.as<tflite_abi::SequenceLstmParams>();
    p = {first.activation,  first.cellClip,     first.projectionClip,
         first.isTimeMajor, first.isAsymmetric, false};
  }
  return options(BuiltinOptions::UnidirectionalSequenceLSTMOptions,
                 [p](FlatBufferBuilder& builder) {
                   return schema::CreateUnidirectionalSequenceLSTMOptions(
                       builder, activation(p.activation), p.cellClip, p.projectionClip,
                       p.isTimeMajor, p.isAsymmetric, p.isDiagonal);
                 });
}

Options readBidirectionalLstm(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::BidirectionalLstmParams>();
  return options(BuiltinOptions::BidirectionalSequenceLSTMOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateBidirectionalSequenceLSTMOptions(builder, activation(p.activation),
                                                          p.cellClip, p.projectionClip, p.isMerged,
                                                          p.isTimeMajor, p.isAsymmetric);
  });
}

Options readReducer(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::ReducerParams>();
  return options(BuiltinOptions::ReducerOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateReducerOptions(builder, p.keepDimensions);
  });
}

Options readCumsum(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::CumsumParams>();
  return options(BuiltinOptions::CumsumOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateCumsumOptions(builder, p.isExclusive, p.isReverse);
  });
}

template <BuiltinOptions kType, typename Builder>
Options readResize(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::ResizeParams>();
  return options(kType, [p](FlatBufferBuilder& builder) {
    Builder table(builder);
    table.add_align_corners(p.alignsCorners);
    table.add_half_pixel_centers(p.hasHalfPixelCenters);
    return table.Finish();
  });
}

std::vector<int32_t> dimensionsOf(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::DimensionsParams>();
  return {p.values, p.values + std::clamp(p.count, 0, tflite_abi::kMostParamDimensions)};
}

Options readReshape(const Parameters& parameters) {
  return options(BuiltinOptions::ReshapeOptions,
                 [list = dimensionsOf(parameters)](FlatBufferBuilder& builder) {
                   return schema::CreateReshapeOptionsDirect(builder, &list);
                 });
}

Options readSqueeze(const Parameters& parameters) {
  return options(BuiltinOptions::SqueezeOptions,
                 [list = dimensionsOf(parameters)](FlatBufferBuilder& builder) {
                   return schema::CreateSqueezeOptionsDirect(builder, &list);
                 });
}

Options readConcatenation(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::ConcatenationParams>();
  return options(BuiltinOptions::ConcatenationOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateConcatenationOptions(builder, p.axis, activation(p.activation));
  });
}

Options readPack(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::PackParams>();
  return options(BuiltinOptions::PackOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreatePackOptions(builder, p.count, p.axis);
  });
}

Options readUnpack(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::PackParams>();
  return options(BuiltinOptions::UnpackOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateUnpackOptions(builder, p.count, p.axis);
  });
}

Options readStridedSlice(const Parameters& parameters) {
  tflite_abi::StridedSliceParamsV8 p{};
  if (parameters.version >= 8)
    p = parameters.as<tflite_abi::StridedSliceParamsV8>();
  else
    p.first = parameters.as<tflite_abi::StridedSliceParams>();
  return options(BuiltinOptions::StridedSliceOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateStridedSliceOptions(builder, p.first.beginMask, p.first.endMask,
                                             p.first.ellipsisMask, p.first.newAxisMask,
                                             p.first.shrinkAxisMask, p.isOffset);
  });
}

Options readReverseSequence(const Parameters& parameters) {
  const auto p = parameters.as<tflite_abi::ReverseSequenceParams>();
  return options(BuiltinOptions::ReverseSequenceOptions, [p](FlatBufferBuilder& builder) {
    return schema::CreateReverseSequenceOptions(builder, p.sequenceDimension, p.batchDimension);
  });
}

// The operations that the reader of files translates, except those that call other subgraphs or
// keep resources, which belong to the runtime, and random ones, whose parameters changed their
// types.
constexpr KnownOperation kKnownOperations[] = {
    {BuiltinOperator::ADD, readActivation<BuiltinOptions::AddOptions, schema::AddOptionsBuilder>},
    {BuiltinOperator::AVERAGE_POOL_2D, readPool},
    {BuiltinOperator::CONCATENATION, readConcatenation},
    {BuiltinOperator::CONV_2D, readConv},
    {BuiltinOperator::DEPTHWISE_CONV_2D, readDepthwiseConv},
    {BuiltinOperator::DEPTH_TO_SPACE,
     readBlockSize<BuiltinOptions::DepthToSpaceOptions, schema::DepthToSpaceOptionsBuilder>},
    {BuiltinOperator::DEQUANTIZE, nullptr},
    {BuiltinOperator::EMBEDDING_LOOKUP, nullptr},
    {BuiltinOperator::FLOOR, nullptr},
    {BuiltinOperator::FULLY_CONNECTED, readFullyConnected},
    {BuiltinOperator::HASHTABLE_LOOKUP, nullptr},
    {BuiltinOperator::L2_NORMALIZATION,
     readActivation<BuiltinOptions::L2NormOptions, schema::L2NormOptionsBuilder>},
    {BuiltinOperator::L2_POOL_2D, readPool},
    {BuiltinOperator::LOCAL_RESPONSE_NORMALIZATION, readLocalResponseNormalization},
    {BuiltinOperator::LOGISTIC, nullptr},
    {BuiltinOperator::LSH_PROJECTION, readLshProjection},
    {BuiltinOperator::LSTM, readLstm},
    {BuiltinOperator::MAX_POOL_2D, readPool},
    {BuiltinOperator::MUL, readActivation<BuiltinOptions::MulOptions, schema::MulOptionsBuilder>},
    {BuiltinOperator::RELU, nullptr},
    {BuiltinOperator::RELU_N1_TO_1, nullptr},
    {BuiltinOperator::RELU6, nullptr},
    {BuiltinOperator::RESHAPE, readReshape},
    {BuiltinOperator::RESIZE_BILINEAR,
     readResize<BuiltinOptions::ResizeBilinearOptions, schema::ResizeBilinearOptionsBuilder>},
    {BuiltinOperator::RNN, readRnn},
    {BuiltinOperator::SOFTMAX, readSoftmax},
    {BuiltinOperator::SPACE_TO_DEPTH,
     readBlockSize<BuiltinOptions::SpaceToDepthOptions, schema::SpaceToDepthOptionsBuilder>},
    {BuiltinOperator::SVDF, readSvdf},
    {BuiltinOperator::TANH, nullptr},
    {BuiltinOperator::PAD, nullptr},
    {BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_RNN, readSequenceRnn},
    {BuiltinOperator::GATHER, readGather},
    {BuiltinOperator::BATCH_TO_SPACE_ND, nullptr},
    {BuiltinOperator::SPACE_TO_BATCH_ND, nullptr},
    {BuiltinOperator::TRANSPOSE, nullptr},
    {BuiltinOperator::MEAN, readReducer},
    {BuiltinOperator::SUB, readActivation<BuiltinOptions::SubOptions, schema::SubOptionsBuilder>},
    {BuiltinOperator::DIV, readActivation<BuiltinOptions::DivOptions, schema::DivOptionsBuilder>},
    {BuiltinOperator::SQUEEZE, readSqueeze},
    {BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_LSTM, readSequenceLstm},
    {BuiltinOperator::STRIDED_SLICE, readStridedSlice},
    {BuiltinOperator::BIDIRECTIONAL_SEQUENCE_RNN, readBidirectionalRnn},
    {BuiltinOperator::EXP, nullptr},
    {BuiltinOperator::TOPK_V2, nullptr},
    {BuiltinOperator::SPLIT, readSplits<BuiltinOptions::SplitOptions, schema::SplitOptionsBuilder>},
    {BuiltinOperator::LOG_SOFTMAX, nullptr},
    {BuiltinOperator::BIDIRECTIONAL_SEQUENCE_LSTM, readBidirectionalLstm},
    {BuiltinOperator::CAST, nullptr},
    {BuiltinOperator::PRELU, nullptr},
    {BuiltinOperator::MAXIMUM, nullptr},
    {BuiltinOperator::ARG_MAX, nullptr},
    {BuiltinOperator::MINIMUM, nullptr},
    {BuiltinOperator::LESS, nullptr},
    {BuiltinOperator::NEG, nullptr},
    {BuiltinOperator::PADV2, nullptr},
    {BuiltinOperator::GREATER, nullptr},
    {BuiltinOperator::GREATER_EQUAL, nullptr},
    {BuiltinOperator::LESS_EQUAL, nullptr},
    {BuiltinOperator::SELECT, nullptr},
    {BuiltinOperator::SLICE, nullptr},
    {BuiltinOperator::SIN, nullptr},
    {BuiltinOperator::TRANSPOSE_CONV, readTransposeConv},
    {BuiltinOperator::SPARSE_TO_DENSE, nullptr},
    {BuiltinOperator::TILE, nullptr},
    {BuiltinOperator::EXPAND_DIMS, nullptr},
    {BuiltinOperator::EQUAL, nullptr},
    {BuiltinOperator::NOT_EQUAL, nullptr},
    {BuiltinOperator::LOG, nullptr},
    {BuiltinOperator::SUM, readReducer},
    {BuiltinOperator::SQRT, nullptr},
    {BuiltinOperator::RSQRT, nullptr},
    {BuiltinOperator::SHAPE, nullptr},
    {BuiltinOperator::POW, nullptr},
    {BuiltinOperator::ARG_MIN, nullptr},
    {BuiltinOperator::REDUCE_PROD, readReducer},
    {BuiltinOperator::REDUCE_MAX, readReducer},
    {BuiltinOperator::PACK, readPack},
    {BuiltinOperator::LOGICAL_OR, nullptr},
    {BuiltinOperator::ONE_HOT, readOneHot},
    {BuiltinOperator::LOGICAL_AND, nullptr},
    {BuiltinOperator::LOGICAL_NOT, nullptr},
    {BuiltinOperator::UNPACK, readUnpack},
    {BuiltinOperator::REDUCE_MIN, readReducer},
    {BuiltinOperator::FLOOR_DIV, nullptr},
    {BuiltinOperator::REDUCE_ANY, readReducer},
    {BuiltinOperator::SQUARE, nullptr},
    {BuiltinOperator::ZEROS_LIKE, nullptr},
    {BuiltinOperator::FILL, nullptr},
    {BuiltinOperator::FLOOR_MOD, nullptr},
    {BuiltinOperator::RANGE, nullptr},
    {BuiltinOperator::RESIZE_NEAREST_NEIGHBOR,
     readResize<BuiltinOptions::ResizeNearestNeighborOptions,
                schema::ResizeNearestNeighborOptionsBuilder>},
    {BuiltinOperator::LEAKY_RELU, readLeakyRelu},
    {BuiltinOperator::SQUARED_DIFFERENCE, nullptr},
    {BuiltinOperator::MIRROR_PAD, readMirrorPad},
    {BuiltinOperator::ABS, nullptr},
    {BuiltinOperator::SPLIT_V,
     readSplits<BuiltinOptions::SplitVOptions, schema::SplitVOptionsBuilder>},
    {BuiltinOperator::UNIQUE, readUnique},
    {BuiltinOperator::CEIL, nullptr},
    {BuiltinOperator::REVERSE_V2, nullptr},
    {BuiltinOperator::ADD_N, nullptr},
    {BuiltinOperator::GATHER_ND, nullptr},
    {BuiltinOperator::COS, nullptr},
    {BuiltinOperator::WHERE, nullptr},
    {BuiltinOperator::RANK, nullptr},
    {BuiltinOperator::ELU, nullptr},
    {BuiltinOperator::REVERSE_SEQUENCE, readReverseSequence},
    {BuiltinOperator::MATRIX_DIAG, nullptr},
    {BuiltinOperator::QUANTIZE, nullptr},
    {BuiltinOperator::MATRIX_SET_DIAG, nullptr},
    {BuiltinOperator::ROUND, nullptr},
    {BuiltinOperator::HARD_SWISH, nullptr},
    {BuiltinOperator::NON_MAX_SUPPRESSION_V4, nullptr},
    {BuiltinOperator::NON_MAX_SUPPRESSION_V5, nullptr},
    {BuiltinOperator::SCATTER_ND, nullptr},
    {BuiltinOperator::SELECT_V2, nullptr},
    {BuiltinOperator::DENSIFY, nullptr},
    {BuiltinOperator::SEGMENT_SUM, nullptr},
    {BuiltinOperator::BATCH_MATMUL, readBatchMatMul},
    {BuiltinOperator::CUMSUM, readCumsum},
    {BuiltinOperator::BROADCAST_TO, nullptr},
    {BuiltinOperator::RFFT2D, nullptr},
    {BuiltinOperator::CONV_3D, readConv3d},
    {BuiltinOperator::IMAG, nullptr},
    {BuiltinOperator::REAL, nullptr},
    {BuiltinOperator::COMPLEX_ABS, nullptr},
    {BuiltinOperator::REDUCE_ALL, readReducer},
    {BuiltinOperator::CONV_3D_TRANSPOSE, readConv3d},
    {BuiltinOperator::BROADCAST_ARGS, nullptr},
    {BuiltinOperator::BUCKETIZE, readBucketize},
    {BuiltinOperator::GELU, readGelu},
    {BuiltinOperator::DYNAMIC_UPDATE_SLICE, nullptr},
    {BuiltinOperator::RELU_0_TO_1, nullptr},
    {BuiltinOperator::UNSORTED_SEGMENT_PROD, nullptr},
    {BuiltinOperator::UNSORTED_SEGMENT_MAX, nullptr},
    {BuiltinOperator::UNSORTED_SEGMENT_SUM, nullptr},
    {BuiltinOperator::ATAN2, nullptr},
    {BuiltinOperator::UNSORTED_SEGMENT_MIN, nullptr},
    {BuiltinOperator::SIGN, nullptr},
    {BuiltinOperator::BITCAST, nullptr},
    {BuiltinOperator::BITWISE_XOR, nullptr},
    {BuiltinOperator::RIGHT_SHIFT, nullptr},
};
static_assert(std::ranges::is_sorted(kKnownOperations, {}, &KnownOperation::code));

}  // namespace

const KnownOperation* findKnownOperation(BuiltinOperator code) {
  const auto* const found =
      std::ranges::lower_bound(kKnownOperations, code, {}, &KnownOperation::code);
  return found != std::end(kKnownOperations) && found->code == code ? found : nullptr;
}

}  // namespace hearth::delegate
