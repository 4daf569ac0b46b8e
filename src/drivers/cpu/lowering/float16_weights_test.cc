// SPDX-License-Identifier: Apache-2.0
// Models whose float16 weights are converted to float32 run like models of float32.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "drivers/cpu/cpu_device.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

// The nodes of a model's execution graph, each with its operation and kernel.
std::vector<std::string> nodesOf(const graph::Model& model) {
  EXPECT_TRUE(initializeXnnpack());
  PackedWeights weights;
  PlanBuilder builder(model, &weights, {});
  const Status built = builder.build();
  EXPECT_TRUE(built) << built.error().toString();
  std::vector<std::string> nodes;
  for (const Node& node : builder.takePlan().nodes) nodes.emplace_back(node.name);
  return nodes;
}

std::vector<_Float16> halvesFor(const Dimensions& dimensions, unsigned seed) {
  std::vector<_Float16> halves;
  for (const float value : randomFloats(countOf(dimensions), seed))
    halves.push_back(static_cast<_Float16>(value));
  return halves;
}

// A float16 constant and what `conversion` makes of it.
uint32_t convertedHalves(ModelBuilder* builder, OperationType conversion,
                         const Dimensions& dimensions, unsigned seed) {
  const uint32_t half =
      builder->constant(OperandType::kTensorFloat16, dimensions, halvesFor(dimensions, seed));
  const uint32_t whole = builder->temporary(kFloat, dimensions);
  builder->operation(conversion, {half}, {whole});
  return whole;
}

class Float16WeightsTest : public ::testing::TestWithParam<OperationType> {
 protected:
  uint32_t weights(const Dimensions& dimensions, unsigned seed) {
    return convertedHalves(&builder_, GetParam(), dimensions, seed);
  }
  uint32_t scalar(int32_t value) { return builder_.scalar(value); }

  // The graph has this one node, which does not run on a slow kernel.
  void expectOneNode(const std::string& name, const Dimensions& input) {
    EXPECT_EQ(nodesOf(builder_.model()), std::vector<std::string>{name});
    const auto support = createCpuDevice()->explainOperations(builder_.model());
    ASSERT_TRUE(support) << support.error().toString();
    EXPECT_NE(support->back().kernel, "reference");
    EXPECT_EQ(differenceFromReference(builder_.model(), {floatsFor(input, 1)}, nullptr, 1e-5f), "");
  }

  ModelBuilder builder_;
};

TEST_P(Float16WeightsTest, DepthwiseConvolutions) {
  // Windows of 3x3 run on a kernel of ours, those of 4x4 on XNNPACK's.
  for (const uint32_t side : {3, 4}) {
    builder_ = ModelBuilder();
    const Dimensions input = {1, 9, 8, 20};
    const uint32_t data = builder_.input(kFloat, input);
    const uint32_t filter = weights({1, side, side, 20}, 2);
    const uint32_t bias = weights({20}, 3);
    const uint32_t one = scalar(1);
    builder_.operation(OperationType::kDepthwiseConv2d,
                       {data, filter, bias, one, one, one, one, scalar(1)},
                       {builder_.output(kFloat, input)});
    expectOneNode("DEPTHWISE_CONV_2D", input);
  }
}

TEST_P(Float16WeightsTest, GroupedConvolutions) {
  const Dimensions input = {1, 9, 8, 12};
  const uint32_t data = builder_.input(kFloat, input);
  const uint32_t filter = weights({10, 3, 3, 6}, 2);
  const uint32_t bias = weights({10}, 3);
  const uint32_t one = scalar(1);
  builder_.operation(OperationType::kGroupedConv2d,
                     {data, filter, bias, one, one, one, scalar(2), scalar(0)},
                     {builder_.output(kFloat, {1, 9, 8, 10})});
  expectOneNode("GROUPED_CONV_2D", input);
}

TEST_P(Float16WeightsTest, TransposedConvolutions) {
  const Dimensions input = {1, 4, 5, 6};
  const uint32_t data = builder_.input(kFloat, input);
  const uint32_t filter = weights({7, 3, 3, 6}, 2);
  const uint32_t bias = weights({7}, 3);
  const uint32_t shape =
      builder_.constant(OperandType::kTensorInt32, {4}, std::vector<int32_t>{1, 8, 10, 7});
  builder_.operation(OperationType::kTransposeConv2d,
                     {data, filter, bias, shape, scalar(1), scalar(2), scalar(2), scalar(0),
                      builder_.scalar(false)},
                     {builder_.output(kFloat, {1, 8, 10, 7})});
  expectOneNode("TRANSPOSE_CONV_2D", input);
}

TEST_P(Float16WeightsTest, Convolutions) {
  const Dimensions input = {1, 9, 8, 12};
  const uint32_t data = builder_.input(kFloat, input);
  const uint32_t filter = weights({24, 3, 3, 12}, 2);
  const uint32_t bias = weights({24}, 3);
  const uint32_t one = scalar(1);
  builder_.operation(OperationType::kConv2d, {data, filter, bias, one, one, one, scalar(3)},
                     {builder_.output(kFloat, {1, 9, 8, 24})});
  expectOneNode("CONV_2D", input);
}

TEST_P(Float16WeightsTest, SlopesOfPrelu) {
  const Dimensions input = {1, 9, 8, 20};
  const uint32_t data = builder_.input(kFloat, input);
  builder_.operation(OperationType::kPrelu, {data, weights({1, 1, 20}, 2)},
                     {builder_.output(kFloat, input)});
  expectOneNode("PRELU", input);
}

TEST_P(Float16WeightsTest, SummandsAndFactors) {
  // The second constant is so large that it is kept in the store.
  for (const Dimensions& shape : {Dimensions{20}, Dimensions{40, 30, 20}})
    for (const OperationType type : {OperationType::kAdd, OperationType::kMul}) {
      builder_ = ModelBuilder();
      const Dimensions input = {1, 40, 30, 20};
      const uint32_t data = builder_.input(kFloat, input);
      builder_.operation(type, {data, weights(shape, 2), scalar(0)},
                         {builder_.output(kFloat, input)});
      expectOneNode(std::string(graph::nameOf(type)), input);
    }
}

INSTANTIATE_TEST_SUITE_P(Conversions, Float16WeightsTest,
                         ::testing::Values(OperationType::kDequantize, OperationType::kCast));

}  // namespace
}  // namespace hearth::cpu
