// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite_c/node_parameters.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>

#include "tflite_abi/builtin_params.h"
#include "tflite_abi/tensor_type.h"
#include "tflite_schema_generated.h"

namespace hearth::tflite_c {
namespace {

namespace schema = tflite::schema;
using schema::BuiltinOperator;
using schema::Operator;

// More than any version of a structure has.
constexpr size_t kParameterBytes = 256;

// Structures of which the delegate reads less, or nothing.
struct BiasedConvParams {
  tflite_abi::ConvParams first;
  int32_t biasType;
};
struct BiasedFullyConnectedParams {
  tflite_abi::FullyConnectedParams first;
  int32_t biasType;
};
struct BiasedTransposeConvParams {
  tflite_abi::TransposeConvParamsV4 first;
  int32_t biasType;
};
struct ScaledActivationParams {
  int32_t activation;
  bool isPotScaled;
};
struct VarHandleParams {
  const char* container;
  const char* name;
};
struct RandomParams {
  int64_t seed, seed2;
};
static_assert(offsetof(BiasedFullyConnectedParams, biasType) == 12);

template <typename Params>
NodeParameters make(const Params& params) {
  static_assert(std::is_trivially_copyable_v<Params> && sizeof(Params) <= kParameterBytes);
  NodeParameters made(std::calloc(1, kParameterBytes));
  if (made == nullptr) throw std::bad_alloc();
  std::memcpy(made.get(), &params, sizeof(params));
  return made;
}

// The table of options; the format's defaults where the file has none.
template <typename Table>
const Table& optionsOf(const Operator& source) {
  // Root offset, vtable without fields, table.
  alignas(8) static constexpr uint8_t kEmptyTable[] = {8, 0, 0, 0, 4, 0, 4, 0, 4, 0, 0, 0};
  const Table* const found = source.builtin_options_as<Table>();
  return found != nullptr ? *found : *flatbuffers::GetRoot<Table>(kEmptyTable);
}

// The interface's numbers begin with one for "unknown", those of files do not.
template <typename Enumeration>
int32_t oneMore(Enumeration value) {
  return static_cast<int32_t>(value) + 1;
}

template <typename Enumeration>
int32_t number(Enumeration value) {
  return static_cast<int32_t>(value);
}

int32_t typeNumber(schema::TensorType type) {
  return number(tflite_abi::typeOfFile(number(type)));
}

const char* textOf(const flatbuffers::String* text) {
  return text == nullptr ? "" : text->c_str();
}

tflite_abi::DimensionsParams dimensions(const flatbuffers::Vector<int32_t>* list) {
  tflite_abi::DimensionsParams params{};
  if (list == nullptr) return params;
  params.count = static_cast<int32_t>(
      std::min<uint32_t>(list->size(), static_cast<uint32_t>(tflite_abi::kMostParamDimensions)));
  std::copy_n(list->begin(), params.count, params.values);
  return params;
}

// --- One function for each form ---

NodeParameters convolution(const Operator& source) {
  const auto& o = optionsOf<schema::Conv2DOptions>(source);
  return make(BiasedConvParams{
      {oneMore(o.padding()), o.stride_w(), o.stride_h(), number(o.fused_activation_function()),
       o.dilation_w_factor(), o.dilation_h_factor()},
      typeNumber(o.quantized_bias_type())});
}

NodeParameters depthwiseConvolution(const Operator& source) {
  const auto& o = optionsOf<schema::DepthwiseConv2DOptions>(source);
  return make(tflite_abi::DepthwiseConvParams{
      oneMore(o.padding()), o.stride_w(), o.stride_h(), o.depth_multiplier(),
      number(o.fused_activation_function()), o.dilation_w_factor(), o.dilation_h_factor()});
}

NodeParameters transposedConvolution(const Operator& source) {
  const auto& o = optionsOf<schema::TransposeConvOptions>(source);
  return make(BiasedTransposeConvParams{
      {{oneMore(o.padding()), o.stride_w(), o.stride_h()}, number(o.fused_activation_function())},
      typeNumber(o.quantized_bias_type())});
}

NodeParameters convolution3d(const Operator& source) {
  const auto& o = optionsOf<schema::Conv3DOptions>(source);
  return make(tflite_abi::Conv3dParams{
      oneMore(o.padding()), o.stride_w(), o.stride_h(), o.stride_d(), o.dilation_w_factor(),
      o.dilation_h_factor(), o.dilation_d_factor(), number(o.fused_activation_function())});
}

NodeParameters pooling(const Operator& source) {
  const auto& o = optionsOf<schema::Pool2DOptions>(source);
  return make(tflite_abi::PoolParams{oneMore(o.padding()), o.stride_w(), o.stride_h(),
                                     o.filter_width(), o.filter_height(),
                                     number(o.fused_activation_function())});
}

NodeParameters fullyConnected(const Operator& source) {
  const auto& o = optionsOf<schema::FullyConnectedOptions>(source);
  return make(
      BiasedFullyConnectedParams{{number(o.fused_activation_function()), number(o.weights_format()),
                                  o.keep_num_dims(), o.asymmetric_quantize_inputs()},
                                 typeNumber(o.quantized_bias_type())});
}

// ADD and SUB.
template <typename Table>
NodeParameters scaledActivation(const Operator& source) {
  const auto& o = optionsOf<Table>(source);
  return make(ScaledActivationParams{number(o.fused_activation_function()), o.pot_scale_int16()});
}

template <typename Table>
NodeParameters activation(const Operator& source) {
  return make(
      tflite_abi::ActivationParams{number(optionsOf<Table>(source).fused_activation_function())});
}

NodeParameters responseNormalization(const Operator& source) {
  const auto& o = optionsOf<schema::LocalResponseNormalizationOptions>(source);
  return make(
      tflite_abi::LocalResponseNormalizationParams{o.radius(), o.bias(), o.alpha(), o.beta()});
}

NodeParameters lstm(const Operator& source) {
  const auto& o = optionsOf<schema::LSTMOptions>(source);
  return make(tflite_abi::LstmParams{number(o.fused_activation_function()), o.cell_clip(),
                                     o.proj_clip(), number(o.kernel_type()),
                                     o.asymmetric_quantize_inputs()});
}

NodeParameters sequenceLstm(const Operator& source) {
  const auto& o = optionsOf<schema::UnidirectionalSequenceLSTMOptions>(source);
  return make(tflite_abi::SequenceLstmParamsV4{
      number(o.fused_activation_function()), o.cell_clip(), o.proj_clip(), o.time_major(),
      o.asymmetric_quantize_inputs(), o.diagonal_recurrent_tensors()});
}

NodeParameters bidirectionalLstm(const Operator& source) {
  const auto& o = optionsOf<schema::BidirectionalSequenceLSTMOptions>(source);
  return make(tflite_abi::BidirectionalLstmParams{number(o.fused_activation_function()),
                                                  o.cell_clip(), o.proj_clip(), o.merge_outputs(),
                                                  o.time_major(), o.asymmetric_quantize_inputs()});
}

NodeParameters svdf(const Operator& source) {
  const auto& o = optionsOf<schema::SVDFOptions>(source);
  return make(tflite_abi::SvdfParams{o.rank(), number(o.fused_activation_function()),
                                     o.asymmetric_quantize_inputs()});
}

NodeParameters rnn(const Operator& source) {
  const auto& o = optionsOf<schema::RNNOptions>(source);
  return make(
      tflite_abi::RnnParams{number(o.fused_activation_function()), o.asymmetric_quantize_inputs()});
}

NodeParameters sequenceRnn(const Operator& source) {
  const auto& o = optionsOf<schema::SequenceRNNOptions>(source);
  return make(tflite_abi::SequenceRnnParams{o.time_major(), number(o.fused_activation_function()),
                                            o.asymmetric_quantize_inputs()});
}

NodeParameters bidirectionalRnn(const Operator& source) {
  const auto& o = optionsOf<schema::BidirectionalSequenceRNNOptions>(source);
  return make(
      tflite_abi::BidirectionalRnnParams{o.time_major(), number(o.fused_activation_function()),
                                         o.merge_outputs(), o.asymmetric_quantize_inputs()});
}

template <typename Table>
NodeParameters resizing(const Operator& source) {
  const auto& o = optionsOf<Table>(source);
  return make(tflite_abi::ResizeParams{o.align_corners(), o.half_pixel_centers()});
}

NodeParameters reduction(const Operator& source) {
  return make(tflite_abi::ReducerParams{optionsOf<schema::ReducerOptions>(source).keep_dims()});
}

NodeParameters stridedSlice(const Operator& source) {
  const auto& o = optionsOf<schema::StridedSliceOptions>(source);
  return make(tflite_abi::StridedSliceParamsV8{
      {o.begin_mask(), o.end_mask(), o.ellipsis_mask(), o.new_axis_mask(), o.shrink_axis_mask()},
      o.offset()});
}

NodeParameters concatenation(const Operator& source) {
  const auto& o = optionsOf<schema::ConcatenationOptions>(source);
  return make(tflite_abi::ConcatenationParams{o.axis(), number(o.fused_activation_function())});
}

NodeParameters bucketize(const Operator& source) {
  const auto* const list = optionsOf<schema::BucketizeOptions>(source).boundaries();
  if (list == nullptr) return make(tflite_abi::BucketizeParams{});
  return make(tflite_abi::BucketizeParams{static_cast<int32_t>(list->size()), list->data()});
}

NodeParameters composite(const Operator& source) {
  const auto* const o = source.builtin_options_2_as_StableHLOCompositeOptions();
  if (o == nullptr) return make(tflite_abi::CompositeParams{"", 0, 0, nullptr, 0});
  const auto* const attributes = o->composite_attributes();
  return make(tflite_abi::CompositeParams{textOf(o->name()), o->decomposition_subgraph_index(),
                                          o->version(),
                                          attributes == nullptr ? nullptr : attributes->data(),
                                          attributes == nullptr ? 0 : attributes->size()});
}

}  // namespace

NodeParameters nodeParameters(const tflite::FileOperator& file) {
  const Operator& source = *file.table;
  switch (static_cast<BuiltinOperator>(file.code)) {
    case BuiltinOperator::CONV_2D:
      return convolution(source);
    case BuiltinOperator::DEPTHWISE_CONV_2D:
      return depthwiseConvolution(source);
    case BuiltinOperator::TRANSPOSE_CONV:
      return transposedConvolution(source);
    case BuiltinOperator::CONV_3D:
    case BuiltinOperator::CONV_3D_TRANSPOSE:
      return convolution3d(source);
    case BuiltinOperator::AVERAGE_POOL_2D:
    case BuiltinOperator::MAX_POOL_2D:
    case BuiltinOperator::L2_POOL_2D:
      return pooling(source);
    case BuiltinOperator::FULLY_CONNECTED:
      return fullyConnected(source);
    case BuiltinOperator::ADD:
      return scaledActivation<schema::AddOptions>(source);
    case BuiltinOperator::SUB:
      return scaledActivation<schema::SubOptions>(source);
    case BuiltinOperator::MUL:
      return activation<schema::MulOptions>(source);
    case BuiltinOperator::DIV:
      return activation<schema::DivOptions>(source);
    case BuiltinOperator::L2_NORMALIZATION:
      return activation<schema::L2NormOptions>(source);
    case BuiltinOperator::LOCAL_RESPONSE_NORMALIZATION:
      return responseNormalization(source);
    case BuiltinOperator::SOFTMAX:
      return make(tflite_abi::FloatParams{optionsOf<schema::SoftmaxOptions>(source).beta()});
    case BuiltinOperator::LEAKY_RELU:
      return make(tflite_abi::FloatParams{optionsOf<schema::LeakyReluOptions>(source).alpha()});
    case BuiltinOperator::GELU:
      return make(tflite_abi::GeluParams{optionsOf<schema::GeluOptions>(source).approximate()});
    case BuiltinOperator::LSTM:
      return lstm(source);
    case BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_LSTM:
      return sequenceLstm(source);
    case BuiltinOperator::BIDIRECTIONAL_SEQUENCE_LSTM:
      return bidirectionalLstm(source);
    case BuiltinOperator::SVDF:
      return svdf(source);
    case BuiltinOperator::RNN:
      return rnn(source);
    case BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_RNN:
      return sequenceRnn(source);
    case BuiltinOperator::BIDIRECTIONAL_SEQUENCE_RNN:
      return bidirectionalRnn(source);
    case BuiltinOperator::RESIZE_BILINEAR:
      return resizing<schema::ResizeBilinearOptions>(source);
    case BuiltinOperator::RESIZE_NEAREST_NEIGHBOR:
      return resizing<schema::ResizeNearestNeighborOptions>(source);
    case BuiltinOperator::MEAN:
    case BuiltinOperator::SUM:
    case BuiltinOperator::REDUCE_PROD:
    case BuiltinOperator::REDUCE_MAX:
    case BuiltinOperator::REDUCE_MIN:
    case BuiltinOperator::REDUCE_ANY:
    case BuiltinOperator::REDUCE_ALL:
      return reduction(source);
    case BuiltinOperator::RESHAPE:
      return make(dimensions(optionsOf<schema::ReshapeOptions>(source).new_shape()));
    case BuiltinOperator::SQUEEZE:
      return make(dimensions(optionsOf<schema::SqueezeOptions>(source).squeeze_dims()));
    case BuiltinOperator::STRIDED_SLICE:
      return stridedSlice(source);
    case BuiltinOperator::CONCATENATION:
      return concatenation(source);
    case BuiltinOperator::BUCKETIZE:
      return bucketize(source);
    case BuiltinOperator::STABLEHLO_COMPOSITE:
      return composite(source);
    case BuiltinOperator::PACK: {
      const auto& o = optionsOf<schema::PackOptions>(source);
      return make(tflite_abi::PackParams{o.values_count(), o.axis()});
    }
    case BuiltinOperator::UNPACK: {
      const auto& o = optionsOf<schema::UnpackOptions>(source);
      return make(tflite_abi::PackParams{o.num(), o.axis()});
    }
    case BuiltinOperator::GATHER: {
      const auto& o = optionsOf<schema::GatherOptions>(source);
      return make(tflite_abi::GatherParams{o.axis(), o.batch_dims()});
    }
    case BuiltinOperator::BATCH_MATMUL: {
      const auto& o = optionsOf<schema::BatchMatMulOptions>(source);
      return make(
          tflite_abi::BatchMatMulParams{o.adj_x(), o.adj_y(), o.asymmetric_quantize_inputs()});
    }
    case BuiltinOperator::CUMSUM: {
      const auto& o = optionsOf<schema::CumsumOptions>(source);
      return make(tflite_abi::CumsumParams{o.exclusive(), o.reverse()});
    }
    case BuiltinOperator::REVERSE_SEQUENCE: {
      const auto& o = optionsOf<schema::ReverseSequenceOptions>(source);
      return make(tflite_abi::ReverseSequenceParams{o.seq_dim(), o.batch_dim()});
    }
    case BuiltinOperator::CAST: {
      const auto& o = optionsOf<schema::CastOptions>(source);
      return make(
          tflite_abi::CastParams{typeNumber(o.in_data_type()), typeNumber(o.out_data_type())});
    }
    case BuiltinOperator::ARG_MAX:
      return make(tflite_abi::IntParams{
          typeNumber(optionsOf<schema::ArgMaxOptions>(source).output_type())});
    case BuiltinOperator::ARG_MIN:
      return make(tflite_abi::IntParams{
          typeNumber(optionsOf<schema::ArgMinOptions>(source).output_type())});
    case BuiltinOperator::UNIQUE:
      return make(tflite_abi::IntParams{
          typeNumber(optionsOf<schema::UniqueOptions>(source).idx_out_type())});
    case BuiltinOperator::ONE_HOT:
      return make(tflite_abi::IntParams{optionsOf<schema::OneHotOptions>(source).axis()});
    case BuiltinOperator::SPLIT:
      return make(tflite_abi::IntParams{optionsOf<schema::SplitOptions>(source).num_splits()});
    case BuiltinOperator::SPLIT_V:
      return make(tflite_abi::IntParams{optionsOf<schema::SplitVOptions>(source).num_splits()});
    case BuiltinOperator::SPACE_TO_DEPTH:
      return make(
          tflite_abi::IntParams{optionsOf<schema::SpaceToDepthOptions>(source).block_size()});
    case BuiltinOperator::DEPTH_TO_SPACE:
      return make(
          tflite_abi::IntParams{optionsOf<schema::DepthToSpaceOptions>(source).block_size()});
    case BuiltinOperator::LSH_PROJECTION:
      return make(
          tflite_abi::IntParams{number(optionsOf<schema::LSHProjectionOptions>(source).type())});
    case BuiltinOperator::MIRROR_PAD:
      return make(
          tflite_abi::IntParams{oneMore(optionsOf<schema::MirrorPadOptions>(source).mode())});
    case BuiltinOperator::IF: {
      const auto& o = optionsOf<schema::IfOptions>(source);
      return make(SubgraphParams{o.then_subgraph_index(), o.else_subgraph_index()});
    }
    case BuiltinOperator::WHILE: {
      const auto& o = optionsOf<schema::WhileOptions>(source);
      return make(SubgraphParams{o.cond_subgraph_index(), o.body_subgraph_index()});
    }
    case BuiltinOperator::CALL_ONCE:
      return make(
          tflite_abi::IntParams{optionsOf<schema::CallOnceOptions>(source).init_subgraph_index()});
    case BuiltinOperator::VAR_HANDLE: {
      const auto& o = optionsOf<schema::VarHandleOptions>(source);
      return make(VarHandleParams{textOf(o.container()), textOf(o.shared_name())});
    }
    case BuiltinOperator::RANDOM_UNIFORM:
    case BuiltinOperator::RANDOM_STANDARD_NORMAL:
    case BuiltinOperator::MULTINOMIAL: {
      const auto& o = optionsOf<schema::RandomOptions>(source);
      return make(RandomParams{o.seed(), o.seed2()});
    }
    default:
      return nullptr;
  }
}

}  // namespace hearth::tflite_c
