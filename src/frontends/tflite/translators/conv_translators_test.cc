// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/tflite/testing/import_testing.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;

template <typename Options>
Options withStrides() {
  Options options;
  options.stride_w = options.stride_h = 1;
  return options;
}

TEST(ConvTranslators, Conv2dDilatedWithoutBias) {
  FloatModel model({{1, 8, 8, 4}, {2, 3, 3, 4}}, {{1, 4, 4, 2}});
  schema::Conv2DOptionsT options;
  options.padding = schema::Padding::VALID;
  options.stride_w = 1;
  options.stride_h = 2;
  options.dilation_w_factor = 2;
  options.dilation_h_factor = 3;
  options.fused_activation_function = schema::ActivationFunctionType::RELU;
  model.addOperator(BuiltinOperator::CONV_2D, {0, 1, -1}, {2}, options);
  EXPECT_THAT(translate(model), ElementsAre("CONV_2D t0 t1 - 2 1 2 1 false 2 3 -> t2"));
}

TEST(ConvTranslators, GroupedConv2d) {
  FloatModel model({{1, 8, 8, 4}, {6, 3, 3, 2}, {6}}, {{1, 8, 8, 6}});
  auto options = withStrides<schema::Conv2DOptionsT>();
  model.addOperator(BuiltinOperator::CONV_2D, {0, 1, 2}, {3}, options);
  EXPECT_THAT(translate(model), ElementsAre("GROUPED_CONV_2D t0 t1 t2 1 1 1 2 0 false -> t3"));
  options.dilation_w_factor = 2;
  model.subgraph().operators[0]->builtin_options.Set(options);
  EXPECT_THAT(errorOf(model), HasSubstr("grouped and dilated"));
}

TEST(ConvTranslators, DepthMultiplierFromShapes) {
  FloatModel model({{1, 8, 8, 4}, {1, 3, 3, 12}, {12}}, {{1, 8, 8, 12}});
  auto options = withStrides<schema::DepthwiseConv2DOptionsT>();
  model.addOperator(BuiltinOperator::DEPTHWISE_CONV_2D, {0, 1, 2}, {3}, options);
  EXPECT_THAT(translate(model), ElementsAre("DEPTHWISE_CONV_2D t0 t1 t2 1 1 1 3 0 -> t3"));
}

TEST(ConvTranslators, FusedTanhIsAnOperation) {
  FloatModel model({{1, 8, 8, 4}, {2, 3, 3, 4}, {2}}, {{1, 8, 8, 2}});
  auto options = withStrides<schema::Conv2DOptionsT>();
  options.fused_activation_function = schema::ActivationFunctionType::TANH;
  model.addOperator(BuiltinOperator::CONV_2D, {0, 1, 2}, {3}, options);
  EXPECT_THAT(translate(model), ElementsAre("CONV_2D t0 t1 t2 1 1 1 0 -> %", "TANH % -> t3"));
  options.fused_activation_function = schema::ActivationFunctionType::SIGN_BIT;
  model.subgraph().operators[0]->builtin_options.Set(options);
  EXPECT_THAT(errorOf(model), HasSubstr("SIGN_BIT"));
}

TEST(ConvTranslators, TransposeConv) {
  FloatModel model({{1, 4, 4, 3}, {2, 3, 3, 3}}, {{1, 8, 8, 2}});
  const int32_t shape = model.ints({1, 8, 8, 2});
  schema::TransposeConvOptionsT options;
  options.stride_w = 2;
  options.stride_h = 3;
  model.addOperator(BuiltinOperator::TRANSPOSE_CONV, {shape, 1, 0}, {2}, options);
  EXPECT_THAT(translate(model), ElementsAre("TRANSPOSE_CONV_2D t0 t1 - t3 1 2 3 0 false -> t2"));
}

TEST(ConvTranslators, Pooling) {
  schema::Pool2DOptionsT options;
  options.padding = schema::Padding::VALID;
  options.stride_w = 1;
  options.stride_h = 2;
  options.filter_width = 3;
  options.filter_height = 4;
  options.fused_activation_function = schema::ActivationFunctionType::RELU_N1_TO_1;
  const std::pair<BuiltinOperator, std::string> cases[] = {
      {BuiltinOperator::AVERAGE_POOL_2D, "AVERAGE_POOL_2D"},
      {BuiltinOperator::MAX_POOL_2D, "MAX_POOL_2D"},
      {BuiltinOperator::L2_POOL_2D, "L2_POOL_2D"}};
  for (const auto& [code, name] : cases) {
    FloatModel model({{1, 8, 8, 4}}, {{1, 3, 6, 4}});
    model.addOperator(code, {0}, {1}, options);
    EXPECT_THAT(translate(model), ElementsAre(name + " t0 2 1 2 3 4 2 -> t1"));
  }
}

TEST(ConvTranslators, BiasScalesOfSharedBias) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::INT8, {1, 4}, 0.5f, 3);
  const int32_t bias = model.addConstant<int32_t>(TensorType::INT32, {2}, {1, 2}, 0.9f);
  std::vector<int32_t> outputs;
  for (const float scale : {0.25f, 0.125f}) {
    const int32_t weights =
        model.addConstant<int8_t>(TensorType::INT8, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}, scale);
    outputs.push_back(model.addTensor(TensorType::INT8, {1, 2}, 1.0f));
    model.addOperator(BuiltinOperator::FULLY_CONNECTED, {input, weights, bias}, {outputs.back()},
                      schema::FullyConnectedOptionsT());
  }
  model.setArguments({input}, outputs);
  const ImportedGraph imported = import(model);
  const graph::Subgraph& main = imported.model->main();
  ASSERT_EQ(main.operations.size(), 2u);
  const auto bias0 = main.operands[main.operations[0].inputs[2]];
  const auto bias1 = main.operands[main.operations[1].inputs[2]];
  EXPECT_EQ(bias0.scale, 0.125f);
  EXPECT_EQ(bias1.scale, 0.0625f);
  EXPECT_EQ(bias0.location.offset, bias1.location.offset);
  EXPECT_EQ(bias0.lifetime, graph::Lifetime::kConstantReference);
}

TEST(ConvTranslators, PerChannelWeights) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::INT8, {1, 4}, 0.5f, 3);
  const int32_t weights =
      model.addConstant<int8_t>(TensorType::INT8, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}, 1.0f);
  model.tensor(weights).quantization->scale = {0.5f, 0.25f};
  model.tensor(weights).quantization->zero_point = {0, 0};
  const int32_t bias = model.addConstant<int32_t>(TensorType::INT32, {2}, {1, 2}, 0.9f);
  const int32_t output = model.addTensor(TensorType::INT8, {1, 2}, 1.0f);
  model.addOperator(BuiltinOperator::FULLY_CONNECTED, {input, weights, bias}, {output},
                    schema::FullyConnectedOptionsT());
  model.setArguments({input}, {output});
  const ImportedGraph imported = import(model);
  const graph::Subgraph& main = imported.model->main();
  ASSERT_EQ(main.operations.size(), 1u);
  const graph::Operand& operand = main.operands[main.operations[0].inputs[1]];
  EXPECT_EQ(operand.type, OperandType::kTensorQuant8SymmPerChannel);
  EXPECT_EQ(operand.perChannel.channelDim, 0u);
  EXPECT_EQ(operand.perChannel.scales, graph::ChannelScales({0.5f, 0.25f}));
  EXPECT_EQ(main.operands[main.operations[0].inputs[2]].scale, 0.0f);

  model.tensor(weights).quantization->zero_point = {0, 1};
  EXPECT_THAT(errorOf(model), HasSubstr("zero points other than 0"));
  model.tensor(weights).quantization->scale = {0.5f, 0.25f, 1.0f};
  EXPECT_THAT(errorOf(model), HasSubstr("3 scales for 2 channels"));
}

TEST(ConvTranslators, MatrixProductsAndNormalisation) {
  FloatModel matmul({{2, 3, 4}, {2, 5, 4}}, {{2, 3, 5}});
  schema::BatchMatMulOptionsT options;
  options.adj_y = true;
  matmul.addOperator(BuiltinOperator::BATCH_MATMUL, {0, 1}, {2}, options);
  EXPECT_THAT(translate(matmul), ElementsAre("BATCH_MATMUL t0 t1 false true -> t2"));

  FloatModel norm({{1, 4}}, {{1, 4}});
  schema::L2NormOptionsT l2;
  l2.fused_activation_function = schema::ActivationFunctionType::RELU;
  norm.addOperator(BuiltinOperator::L2_NORMALIZATION, {0}, {1}, l2);
  EXPECT_THAT(translate(norm), ElementsAre("L2_NORMALIZATION t0 -> %", "RELU % -> t1"));

  FloatModel response({{1, 4, 4, 8}}, {{1, 4, 4, 8}});
  schema::LocalResponseNormalizationOptionsT lrn;
  lrn.radius = 5;
  lrn.bias = 1;
  lrn.alpha = 0.25f;
  lrn.beta = 0.5f;
  response.addOperator(BuiltinOperator::LOCAL_RESPONSE_NORMALIZATION, {0}, {1}, lrn);
  EXPECT_THAT(translate(response),
              ElementsAre("LOCAL_RESPONSE_NORMALIZATION t0 5 1f 0.25f 0.5f -> t1"));
}

TEST(ConvTranslators, Conv3dAndItsTransposedForm) {
  FloatModel model({{1, 2, 3, 4, 5}, {1, 2, 2, 5, 6}, {6}}, {{1, 2, 2, 3, 6}});
  schema::Conv3DOptionsT options;
  options.padding = schema::Padding::VALID;
  options.stride_d = 1;
  options.stride_h = 2;
  options.stride_w = 3;
  options.fused_activation_function = schema::ActivationFunctionType::RELU;
  model.addOperator(BuiltinOperator::CONV_3D, {0, 1, 2}, {3}, options);
  EXPECT_THAT(translate(model), ElementsAre("CONV_3D t0 t1 t2 2 1 2 3 1 1 1 1 -> t3"));

  FloatModel transposed({{1, 2, 3, 4, 5}, {1, 2, 2, 6, 5}}, {{1, 2, 6, 12, 6}});
  const int32_t shape = transposed.ints({1, 2, 6, 12, 6});
  options.padding = schema::Padding::SAME;
  transposed.addOperator(BuiltinOperator::CONV_3D_TRANSPOSE, {shape, 1, 0}, {2}, options);
  EXPECT_THAT(translate(transposed),
              ElementsAre("CONV_3D_TRANSPOSE t0 t1 - 1 1 2 3 1 1 1 1 t3 -> t2"));
}

std::vector<std::string> batchMatmul(TensorType data, TensorType weights, size_t scaleCount) {
  ModelWriter model;
  const float scale = data == TensorType::FLOAT32 ? 0.0f : 0.5f;
  model.addTensor(data, {2, 3}, scale);
  const int32_t right = model.addConstantBytes(weights, {3, 4}, std::vector<uint8_t>(12), 0.25f);
  model.tensor(right).quantization->scale.assign(scaleCount, 0.25f);
  model.tensor(right).quantization->zero_point.assign(scaleCount, 0);
  model.tensor(right).quantization->quantized_dimension = 1;
  const int32_t output = model.addTensor(data, {2, 4}, scale);
  model.addOperator(BuiltinOperator::BATCH_MATMUL, {0, right}, {output},
                    schema::BatchMatMulOptionsT());
  model.setArguments({0}, {output});
  return translate(model);
}

TEST(ConvTranslators, BatchMatmulWidensWeights) {
  for (const size_t scales : {1, 4})
    EXPECT_THAT(batchMatmul(TensorType::FLOAT32, TensorType::INT8, scales),
                ElementsAre("DEQUANTIZE t1 -> %", "BATCH_MATMUL t0 % false false -> t2"));
  EXPECT_THAT(batchMatmul(TensorType::INT8, TensorType::INT8, 1),
              ElementsAre("BATCH_MATMUL t0 t1 false false -> t2"));
  EXPECT_THAT(batchMatmul(TensorType::INT8, TensorType::INT8, 4),
              ElementsAre("DEQUANTIZE t0 -> %", "DEQUANTIZE t1 -> %",
                          "BATCH_MATMUL % % false false -> %", "QUANTIZE % -> t2"));
}

}  // namespace
}  // namespace hearth::tflite
