// SPDX-License-Identifier: Apache-2.0
#include "drivers/delegate/graph_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hal/cts/model_builder.h"
#include "tflite_abi/builtin_params.h"

namespace hearth::drivers::delegate {
namespace {

using graph::OperandType;
using graph::OperationType;
using hal::cts::ModelBuilder;
using testing::ElementsAre;
using testing::HasSubstr;
using tflite_abi::Builtin;

WrittenGraph write(const ModelBuilder& builder, int32_t minor = 20) {
  return writeGraph(std::make_shared<const graph::Model>(builder.model()), {minor});
}

template <typename Params>
Params paramsOf(const WrittenNode& node) {
  Params params{};
  EXPECT_EQ(node.parameters.size(), sizeof(params));
  std::memcpy(&params, node.parameters.data(), std::min(sizeof(params), node.parameters.size()));
  return params;
}

// A convolution of a 5x5 image with explicit paddings and stride 1.
ModelBuilder convolution(const std::vector<int32_t>& paddings, uint32_t size) {
  ModelBuilder builder;
  const uint32_t input =
      builder.input(OperandType::kTensorQuant8AsymmSigned, {1, 5, 5, 1}, 0.5f, 3);
  const uint32_t filter = builder.constant<int8_t>(OperandType::kTensorQuant8AsymmSigned,
                                                   {1, 3, 3, 1}, std::vector<int8_t>(9, 1), 0.25f);
  const uint32_t bias = builder.constant<int32_t>(OperandType::kTensorInt32, {1}, {7}, 0.125f);
  std::vector<uint32_t> inputs = {input, filter, bias};
  for (const int32_t padding : paddings) inputs.push_back(builder.scalar(padding));
  for (const int32_t number : {1, 1, 1}) inputs.push_back(builder.scalar(number));
  const uint32_t output =
      builder.output(OperandType::kTensorQuant8AsymmSigned, {1, size, size, 1}, 1.0f, -4);
  builder.operation(OperationType::kConv2d, std::move(inputs), {output});
  return builder;
}

TEST(GraphWriterTest, PaddingsThatAreSameAreSame) {
  const WrittenGraph graph = write(convolution({1, 1, 1, 1}, 5));
  ASSERT_EQ(graph.nodes.size(), 1u) << graph.refusals[0];
  EXPECT_EQ(graph.nodes[0].code, Builtin::kConv2d);
  EXPECT_EQ(graph.nodes[0].version, 3);
  const auto params = paramsOf<tflite_abi::ConvParams>(graph.nodes[0]);
  EXPECT_EQ(params.padding, 1);
  EXPECT_EQ(params.activation, 1);
  const WrittenTensor& input = graph.tensors[static_cast<size_t>(graph.inputs[0])];
  EXPECT_EQ(input.type, kTfLiteInt8);
  EXPECT_THAT(input.scales, ElementsAre(0.5f));
  EXPECT_THAT(input.zeroPoints, ElementsAre(3));
  const WrittenTensor& bias = graph.tensors[static_cast<size_t>(graph.nodes[0].inputs[2])];
  EXPECT_THAT(bias.scales, ElementsAre(0.125f));
}

TEST(GraphWriterTest, OtherPaddingsBecomeANodeOfTheirOwn) {
  const WrittenGraph graph = write(convolution({2, 0, 1, 1}, 5));
  ASSERT_EQ(graph.nodes.size(), 2u) << graph.refusals[0];
  EXPECT_EQ(graph.nodes[0].code, Builtin::kPad);
  const WrittenTensor& amounts = graph.tensors[static_cast<size_t>(graph.nodes[0].inputs[1])];
  EXPECT_THAT(amounts.dims, ElementsAre(4, 2));
  const auto* const values = reinterpret_cast<const int32_t*>(amounts.data);
  EXPECT_THAT(std::vector<int32_t>(values, values + 8), ElementsAre(0, 0, 1, 1, 2, 0, 0, 0));
  EXPECT_EQ(paramsOf<tflite_abi::ConvParams>(graph.nodes[1]).padding, 2);
  EXPECT_EQ(graph.nodes[1].inputs[0], graph.nodes[0].outputs[0]);
}

TEST(GraphWriterTest, WhatTensorFlowLiteLacksIsRefusedWithASentence) {
  ModelBuilder builder;
  const uint32_t input = builder.input(OperandType::kTensorFloat32, {2, 3});
  const uint32_t axis = builder.scalar(0);
  const uint32_t beta = builder.scalar(1.0f);
  builder.operation(OperationType::kSoftmax, {input, beta, axis},
                    {builder.output(OperandType::kTensorFloat32, {2, 3})});
  const WrittenGraph graph = write(builder);
  EXPECT_TRUE(graph.nodes.empty());
  EXPECT_THAT(graph.refusals[0], HasSubstr("along the last dimension, not along dimension 0"));
}

// TensorFlow Lite would move a row that lies outside.
TEST(GraphWriterTest, RowsThatAreCheckedAreRefused) {
  for (const bool isRow : {false, true}) {
    ModelBuilder builder;
    const uint32_t data = builder.input(OperandType::kTensorFloat32, {4, 3});
    const uint32_t row = builder.input(OperandType::kTensorFloat32, {1, 3});
    const uint32_t begin = builder.input(OperandType::kTensorInt32, {2});
    builder.operation(OperationType::kDynamicUpdateSlice, {data, row, begin, builder.scalar(isRow)},
                      {builder.output(OperandType::kTensorFloat32, {4, 3})});
    const WrittenGraph graph = write(builder);
    EXPECT_EQ(graph.nodes.empty(), isRow);
    if (isRow) EXPECT_THAT(graph.refusals[0], HasSubstr("does not check the number of the row"));
  }
}

TEST(GraphWriterTest, OperationsThatAreNewerThanTheDelegateAreRefused) {
  ModelBuilder builder;
  const uint32_t input = builder.input(OperandType::kTensorFloat32, {2});
  builder.operation(OperationType::kGelu, {input, builder.scalar(true)},
                    {builder.output(OperandType::kTensorFloat32, {2})});
  EXPECT_THAT(write(builder, 3).refusals[0], HasSubstr("since 2.8; the delegate knows 2.3"));
  const WrittenGraph graph = write(builder, 14);
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(graph.nodes[0].code, Builtin::kGelu);
  EXPECT_TRUE(paramsOf<tflite_abi::GeluParams>(graph.nodes[0]).isApproximate);
}

}  // namespace
}  // namespace hearth::drivers::delegate
