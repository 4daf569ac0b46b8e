// SPDX-License-Identifier: Apache-2.0
// What operations and divisions cost, counted by speeds of which one figure is told.
#include "runtime/prices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "hal/cts/model_builder.h"

namespace hearth::runtime {
namespace {

using graph::OperandType;
using graph::OperationType;
using hal::cts::ModelBuilder;

constexpr OperandType kReal = OperandType::kTensorFloat32;
// One second for a product of float32, 100 of float16 and 10,000 of 8 bits.
constexpr DeviceSpeed kProducts{0, 0, 0, 0, {1, 100, 10'000}};
constexpr DeviceSpeed kMovedBytes{0, 0, 0, 1, {}};
constexpr DeviceSpeed kOperations{0, 1, 0, 0, {}};
constexpr DeviceSpeed kWays{1000, 0, 1, 0, {}};

double priceOf(const graph::Model& model, const DeviceSpeed& speed) {
  return Prices(model).ofOperation(speed, 0);
}

// A layer with weights, and its output.
double productsOf(OperationType type, const graph::Dimensions& values,
                  const graph::Dimensions& weights, const graph::Dimensions& results,
                  OperandType number = kReal) {
  ModelBuilder builder;
  const uint32_t input = builder.input(number, values, 1);
  const uint32_t other = builder.input(number, weights, 1);
  builder.operation(type, {input, other}, {builder.output(number, results, 1)});
  return priceOf(builder.model(), kProducts);
}

TEST(PricesTest, ProductsOfLayersCount) {
  EXPECT_EQ(productsOf(OperationType::kConv2d, {1, 4, 4, 3}, {5, 3, 3, 3}, {1, 4, 4, 5}), 80 * 27);
  EXPECT_EQ(productsOf(OperationType::kGroupedConv2d, {1, 4, 4, 6}, {4, 3, 3, 3}, {1, 4, 4, 4}),
            64 * 27);
  EXPECT_EQ(productsOf(OperationType::kTransposeConv2d, {1, 2, 2, 3}, {5, 2, 2, 3}, {1, 4, 4, 5}),
            12 * 20);
  EXPECT_EQ(productsOf(OperationType::kFullyConnected, {2, 7}, {3, 7}, {2, 3}), 6 * 7);
  EXPECT_EQ(productsOf(OperationType::kBatchMatmul, {2, 3, 4}, {2, 4, 5}, {2, 3, 5}), 30 * 4);
  EXPECT_EQ(productsOf(OperationType::kDepthwiseConv2d, {1, 4, 4, 3}, {1, 3, 3, 3}, {1, 4, 4, 3}),
            0);
  EXPECT_EQ(productsOf(OperationType::kFullyConnected, {2, 7}, {3, 7}, {2, 3},
                       OperandType::kTensorFloat16),
            100 * 6 * 7);
  EXPECT_EQ(productsOf(OperationType::kFullyConnected, {2, 7}, {3, 7}, {2, 3},
                       OperandType::kTensorQuant8Asymm),
            10'000 * 6 * 7);
}

TEST(PricesTest, BytesThatAreReadAndWrittenCount) {
  ModelBuilder sum;
  const uint32_t a = sum.input(kReal, {8});
  const uint32_t b = sum.constant(kReal, {8}, std::vector<float>(8));
  sum.operation(OperationType::kAdd, {a, b, sum.scalar(int32_t{0})}, {sum.output(kReal, {8})});
  EXPECT_EQ(priceOf(sum.model(), kMovedBytes), 3 * 32 + 4);
  // A look-up reads a little of its table.
  ModelBuilder rows;
  const uint32_t table = rows.constant(kReal, {100, 4}, std::vector<float>(400));
  const uint32_t numbers = rows.input(OperandType::kTensorInt32, {2});
  rows.operation(OperationType::kGather, {table, rows.scalar(int32_t{0}), numbers},
                 {rows.output(kReal, {2, 4})});
  EXPECT_EQ(priceOf(rows.model(), kMovedBytes), 8 + 32);
}

// So many operations, one after the other.
uint32_t subgraphOf(ModelBuilder& builder, int operations) {
  const uint32_t subgraph = builder.beginSubgraph();
  uint32_t value = builder.input(kReal, {2});
  for (int i = 0; i < operations; ++i) {
    const uint32_t next =
        i + 1 < operations ? builder.temporary(kReal, {2}) : builder.output(kReal, {2});
    builder.operation(OperationType::kRelu, {value}, {next});
    value = next;
  }
  return subgraph;
}

TEST(PricesTest, HalfOfEachBranchCountsAndOneRoundOfALoop) {
  for (const auto& [type, price] : {std::pair(OperationType::kIf, 0.5 * 3 + 0.5 * 5),
                                    std::pair(OperationType::kWhile, 3.0 + 5)}) {
    ModelBuilder builder;
    const uint32_t first = subgraphOf(builder, 3);
    const uint32_t second = subgraphOf(builder, 5);
    builder.returnToMain();
    std::vector<uint32_t> inputs;
    if (type == OperationType::kIf) inputs.push_back(builder.input(OperandType::kTensorBool8, {1}));
    inputs.push_back(builder.subgraphOperand(first));
    inputs.push_back(builder.subgraphOperand(second));
    inputs.push_back(builder.input(kReal, {2}));
    builder.operation(type, inputs, {builder.output(kReal, {2})});
    EXPECT_EQ(priceOf(builder.model(), kOperations), price) << graph::nameOf(type);
  }
}

// On two devices by turns: t = relu(x); y = relu(t); z = t + y and w = t * y.
TEST(PricesTest, EachWayOfATensorIsPaidOnce) {
  ModelBuilder builder;
  const uint32_t x = builder.input(kReal, {4});
  const uint32_t t = builder.temporary(kReal, {4});
  const uint32_t y = builder.temporary(kReal, {4});
  const uint32_t none = builder.scalar(int32_t{0});
  builder.operation(OperationType::kRelu, {x}, {t});
  builder.operation(OperationType::kRelu, {t}, {y});
  builder.operation(OperationType::kAdd, {t, y, none}, {builder.output(kReal, {4})});
  builder.operation(OperationType::kMul, {t, y, none}, {builder.output(kReal, {4})});
  const graph::Model& model = builder.model();
  const std::vector<PartitionStep> steps = {{0, {0}}, {1, {1}}, {0, {2, 3}}};
  const Prices prices(model);
  const std::vector<std::optional<DeviceSpeed>> both = {kWays, kWays};
  // In: x; t; t and y. Out: t, y, z and w.
  EXPECT_EQ(prices.ofSteps(both, steps), 3 * 1000 + 16 * (4 + 4));
  // What a device without a speed does costs nothing.
  const std::vector<std::optional<DeviceSpeed>> one = {kWays, std::nullopt};
  EXPECT_EQ(prices.ofSteps(one, steps), 2 * 1000 + 16 * (3 + 3));
}

}  // namespace
}  // namespace hearth::runtime
