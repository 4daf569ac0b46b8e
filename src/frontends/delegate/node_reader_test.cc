// SPDX-License-Identifier: Apache-2.0
#include "frontends/delegate/node_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "frontends/delegate/known_operations.h"
#include "frontends/delegate/testing/fake_runtime.h"
#include "frontends/tflite/translators/translators.h"
#include "tflite_abi/builtin_params.h"

namespace hearth::delegate {
namespace {

namespace schema = tflite::schema;
using schema::BuiltinOperator;

// The options table that is made of a node's parameters.
template <typename Table, typename Params>
std::unique_ptr<typename Table::NativeTableType> optionsOf(BuiltinOperator code, Params params,
                                                           int32_t version = 1) {
  TfLiteNode node{};
  node.builtin_data = &params;
  TfLiteRegistration registration{};
  registration.builtin_code = static_cast<int32_t>(code);
  registration.version = version;
  const auto read = readNode(node, registration);
  if (!read || !read->options) return nullptr;
  EXPECT_EQ(read->version, version);
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(flatbuffers::Offset<Table>(read->options(builder).o));
  flatbuffers::Verifier verifier(builder.GetBufferPointer(), builder.GetSize());
  EXPECT_TRUE(verifier.VerifyBuffer<Table>(nullptr));
  return std::unique_ptr<typename Table::NativeTableType>(
      flatbuffers::GetRoot<Table>(builder.GetBufferPointer())->UnPack());
}

// The delegate takes whatever the reader of files translates, except what belongs to the runtime.
TEST(NodeReader, KnowsTheOperationsOfFiles) {
  const std::set<BuiltinOperator> leftOut = {
      BuiltinOperator::CUSTOM,
      BuiltinOperator::STABLEHLO_COMPOSITE,
      BuiltinOperator::IF,
      BuiltinOperator::WHILE,
      BuiltinOperator::CALL_ONCE,
      BuiltinOperator::VAR_HANDLE,
      BuiltinOperator::READ_VARIABLE,
      BuiltinOperator::ASSIGN_VARIABLE,
      BuiltinOperator::RANDOM_UNIFORM,
      BuiltinOperator::RANDOM_STANDARD_NORMAL,
      BuiltinOperator::MULTINOMIAL,
      // Which keys a table has stands in another subgraph.
      BuiltinOperator::HASHTABLE,
      BuiltinOperator::HASHTABLE_FIND,
      BuiltinOperator::HASHTABLE_IMPORT,
      BuiltinOperator::HASHTABLE_SIZE,
  };
  size_t known = 0;
  for (const BuiltinOperator code : schema::EnumValuesBuiltinOperator()) {
    const bool isTranslated = tflite::findTranslator(code) != nullptr;
    const bool isKnown = findKnownOperation(code) != nullptr;
    EXPECT_EQ(isKnown, isTranslated && !leftOut.contains(code))
        << schema::EnumNameBuiltinOperator(code);
    known += isKnown ? 1 : 0;
  }
  EXPECT_GT(known, 120u);
}

TEST(NodeReader, ConvolutionsAndPools) {
  const auto conv = optionsOf<schema::Conv2DOptions>(BuiltinOperator::CONV_2D,
                                                     tflite_abi::ConvParams{2, 3, 4, 1, 5, 6});
  ASSERT_NE(conv, nullptr);
  EXPECT_EQ(conv->padding, schema::Padding::VALID);
  EXPECT_EQ(conv->stride_w, 3);
  EXPECT_EQ(conv->stride_h, 4);
  EXPECT_EQ(conv->fused_activation_function, schema::ActivationFunctionType::RELU);
  EXPECT_EQ(conv->dilation_w_factor, 5);
  EXPECT_EQ(conv->dilation_h_factor, 6);
  const auto depthwise = optionsOf<schema::DepthwiseConv2DOptions>(
      BuiltinOperator::DEPTHWISE_CONV_2D, tflite_abi::DepthwiseConvParams{1, 2, 3, 4, 3, 5, 6});
  ASSERT_NE(depthwise, nullptr);
  EXPECT_EQ(depthwise->padding, schema::Padding::SAME);
  EXPECT_EQ(depthwise->depth_multiplier, 4);
  EXPECT_EQ(depthwise->fused_activation_function, schema::ActivationFunctionType::RELU6);
  EXPECT_EQ(depthwise->dilation_h_factor, 6);
  const auto conv3d = optionsOf<schema::Conv3DOptions>(
      BuiltinOperator::CONV_3D, tflite_abi::Conv3dParams{1, 2, 3, 4, 5, 6, 7, 1});
  ASSERT_NE(conv3d, nullptr);
  EXPECT_EQ(conv3d->stride_w, 2);
  EXPECT_EQ(conv3d->stride_h, 3);
  EXPECT_EQ(conv3d->stride_d, 4);
  EXPECT_EQ(conv3d->dilation_w_factor, 5);
  EXPECT_EQ(conv3d->dilation_d_factor, 7);
  const auto pool = optionsOf<schema::Pool2DOptions>(BuiltinOperator::MAX_POOL_2D,
                                                     tflite_abi::PoolParams{1, 2, 3, 4, 5, 0});
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(pool->filter_width, 4);
  EXPECT_EQ(pool->filter_height, 5);
}

TEST(NodeReader, NewFieldsCountFromTheirVersionOn) {
  // Memory after the parameters of a version may hold anything.
  const tflite_abi::TransposeConvParamsV4 conv{{1, 2, 3}, 1};
  EXPECT_EQ(optionsOf<schema::TransposeConvOptions>(BuiltinOperator::TRANSPOSE_CONV, conv, 3)
                ->fused_activation_function,
            schema::ActivationFunctionType::NONE);
  EXPECT_EQ(optionsOf<schema::TransposeConvOptions>(BuiltinOperator::TRANSPOSE_CONV, conv, 4)
                ->fused_activation_function,
            schema::ActivationFunctionType::RELU);
  const tflite_abi::SequenceLstmParamsV4 lstm{4, 1.0f, 2.0f, true, true, true};
  for (const int32_t version : {3, 4}) {
    const auto read = optionsOf<schema::UnidirectionalSequenceLSTMOptions>(
        BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_LSTM, lstm, version);
    ASSERT_NE(read, nullptr);
    EXPECT_EQ(read->fused_activation_function, schema::ActivationFunctionType::TANH);
    EXPECT_EQ(read->proj_clip, 2.0f);
    EXPECT_TRUE(read->time_major);
    EXPECT_EQ(read->diagonal_recurrent_tensors, version == 4);
  }
  const tflite_abi::StridedSliceParamsV8 slice{{1, 2, 3, 4, 5}, true};
  for (const int32_t version : {7, 8}) {
    const auto read =
        optionsOf<schema::StridedSliceOptions>(BuiltinOperator::STRIDED_SLICE, slice, version);
    ASSERT_NE(read, nullptr);
    EXPECT_EQ(read->begin_mask, 1);
    EXPECT_EQ(read->shrink_axis_mask, 5);
    EXPECT_EQ(read->offset, version == 8);
  }
}

TEST(NodeReader, ListsAreBounded) {
  tflite_abi::DimensionsParams params{{1, 2, 3, 4, 5, 6, 7, 8}, 3};
  EXPECT_EQ(optionsOf<schema::ReshapeOptions>(BuiltinOperator::RESHAPE, params)->new_shape,
            (std::vector<int32_t>{1, 2, 3}));
  params.count = 1000;
  EXPECT_EQ(
      optionsOf<schema::SqueezeOptions>(BuiltinOperator::SQUEEZE, params)->squeeze_dims.size(), 8u);
  params.count = -1;
  EXPECT_TRUE(
      optionsOf<schema::ReshapeOptions>(BuiltinOperator::RESHAPE, params)->new_shape.empty());
  const float boundaries[] = {1.5f, 2.5f};
  EXPECT_EQ(optionsOf<schema::BucketizeOptions>(BuiltinOperator::BUCKETIZE,
                                                tflite_abi::BucketizeParams{2, boundaries})
                ->boundaries,
            (std::vector<float>{1.5f, 2.5f}));
  EXPECT_EQ(optionsOf<schema::BucketizeOptions>(BuiltinOperator::BUCKETIZE,
                                                tflite_abi::BucketizeParams{1, boundaries})
                ->boundaries,
            std::vector<float>{1.5f});
  EXPECT_TRUE(optionsOf<schema::BucketizeOptions>(BuiltinOperator::BUCKETIZE,
                                                  tflite_abi::BucketizeParams{2, nullptr})
                  ->boundaries.empty());
}

TEST(NodeReader, Enumerations) {
  EXPECT_EQ(
      optionsOf<schema::MirrorPadOptions>(BuiltinOperator::MIRROR_PAD, tflite_abi::IntParams{2})
          ->mode,
      schema::MirrorPadMode::SYMMETRIC);
  EXPECT_EQ(optionsOf<schema::LSHProjectionOptions>(BuiltinOperator::LSH_PROJECTION,
                                                    tflite_abi::IntParams{2})
                ->type,
            schema::LSHProjectionType::DENSE);
  EXPECT_EQ(optionsOf<schema::UniqueOptions>(BuiltinOperator::UNIQUE, tflite_abi::IntParams{4})
                ->idx_out_type,
            schema::TensorType::INT64);
  EXPECT_EQ(optionsOf<schema::LSTMOptions>(BuiltinOperator::LSTM,
                                           tflite_abi::LstmParams{4, 1, 2, 1, false})
                ->kernel_type,
            schema::LSTMKernelType::BASIC);
  // No others, though the numbers of files have 8 bits.
  const auto convOf = [](int32_t padding, int32_t activation) {
    return optionsOf<schema::Conv2DOptions>(
        BuiltinOperator::CONV_2D, tflite_abi::ConvParams{padding, 1, 1, activation, 1, 1});
  };
  for (const int32_t wrong : {257, 1 << 30, -300}) {
    EXPECT_EQ(schema::EnumNamePadding(convOf(wrong, 0)->padding), std::string_view());
    EXPECT_EQ(
        schema::EnumNameActivationFunctionType(convOf(1, wrong - 1)->fused_activation_function),
        std::string_view());
  }
}

TEST(NodeReader, IncompleteNodesStayWithTheRuntime) {
  TfLiteNode node{};
  TfLiteRegistration registration{};
  registration.builtin_code = static_cast<int32_t>(BuiltinOperator::CONV_2D);
  EXPECT_FALSE(readNode(node, registration));  // no parameters
  registration.builtin_code = static_cast<int32_t>(BuiltinOperator::CUSTOM);
  EXPECT_FALSE(readNode(node, registration));  // no name
  registration.custom_name = "NobodyKnows";
  EXPECT_FALSE(readNode(node, registration));
  registration.builtin_code = 5000;
  EXPECT_FALSE(readNode(node, registration));
  registration.builtin_code = static_cast<int32_t>(BuiltinOperator::RELU);
  EXPECT_TRUE(readNode(node, registration));
}

// The reader of files knows some composites by name; it refuses all others, which have no subgraph
// here.
TEST(NodeReader, CompositesHaveNoDecomposition) {
  const std::vector<uint8_t> attributes = {7, 8, 9};
  tflite_abi::CompositeParams params{"odml.rms_norm", 5, 2, attributes.data(), attributes.size()};
  TfLiteNode node{};
  TfLiteRegistration registration{};
  registration.builtin_code = static_cast<int32_t>(BuiltinOperator::STABLEHLO_COMPOSITE);
  EXPECT_FALSE(readNode(node, registration));
  node.builtin_data = &params;
  const auto read = readNode(node, registration);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->optionsType, schema::BuiltinOptions::NONE);
  EXPECT_EQ(read->optionsType2, schema::BuiltinOptions2::StableHLOCompositeOptions);
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(flatbuffers::Offset<schema::StableHLOCompositeOptions>(read->options(builder).o));
  const auto options = std::unique_ptr<schema::StableHLOCompositeOptionsT>(
      flatbuffers::GetRoot<schema::StableHLOCompositeOptions>(builder.GetBufferPointer())
          ->UnPack());
  EXPECT_EQ(options->name, "odml.rms_norm");
  EXPECT_EQ(options->decomposition_subgraph_index, -1);
  EXPECT_EQ(options->composite_attributes, attributes);
  EXPECT_EQ(options->version, 2);
  params.name = nullptr;
  EXPECT_FALSE(readNode(node, registration));
}

TEST(NodeReader, CustomOptionsAreKept) {
  const std::vector<uint8_t> options = {1, 2, 3};
  TfLiteNode node{};
  node.custom_initial_data = options.data();
  node.custom_initial_data_size = 3;
  TfLiteRegistration registration{};
  registration.builtin_code = static_cast<int32_t>(BuiltinOperator::CUSTOM);
  registration.custom_name = "TFLite_Detection_PostProcess";
  const auto read = readNode(node, registration);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->customOptions, options);
}

}  // namespace
}  // namespace hearth::delegate
