// SPDX-License-Identifier: Apache-2.0
// Models that get other shapes than they declare: what follows, what is refused, and that each part
// of a batch gives what it gives alone.
#include "ops/followed_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "ops/specialized_model.h"

namespace hearth::ops {
namespace {

using graph::Lifetime;
using testing::HasSubstr;

// A model of one subgraph, all of whose shapes are declared.
class Graph {
 public:
  Graph() { model_.subgraphs.resize(1); }

  uint32_t add(OperandType type, Dimensions dimensions, Lifetime lifetime, std::string name = "") {
    graph::Operand operand;
    operand.type = type;
    operand.isRankZeroTensor = dimensions.empty() && !graph::isScalar(type);
    operand.dimensions = std::move(dimensions);
    operand.lifetime = lifetime;
    operand.name = std::move(name);
    model_.main().operands.push_back(std::move(operand));
    return static_cast<uint32_t>(model_.main().operands.size() - 1);
  }
  uint32_t input(Dimensions dimensions) {
    const uint32_t index =
        add(OperandType::kTensorFloat32, std::move(dimensions), Lifetime::kSubgraphInput, "in");
    model_.main().inputs.push_back(index);
    return index;
  }
  template <typename T>
  uint32_t constant(OperandType type, Dimensions dimensions, std::vector<T> values) {
    const uint32_t index = add(type, std::move(dimensions), Lifetime::kConstantCopy);
    std::vector<uint8_t>& all = model_.constantBytes;
    all.resize((all.size() + 7) / 8 * 8);
    model_.main().operands[index].location = {0, all.size(), values.size() * sizeof(T)};
    const auto* const first = reinterpret_cast<const uint8_t*>(values.data());
    all.insert(all.end(), first, first + values.size() * sizeof(T));
    return index;
  }
  uint32_t ints(std::vector<int32_t> values) {
    const auto size = static_cast<uint32_t>(values.size());
    return constant(OperandType::kTensorInt32, {size}, std::move(values));
  }
  uint32_t scalar(int32_t value) {
    return constant(OperandType::kInt32, {}, std::vector<int32_t>{value});
  }
  uint32_t flag(bool value) {
    return constant(OperandType::kBool, {}, std::vector<uint8_t>{static_cast<uint8_t>(value)});
  }
  uint32_t floats(Dimensions dimensions) {
    uint64_t count = 1;
    for (const uint32_t size : dimensions) count *= size;
    return constant(OperandType::kTensorFloat32, std::move(dimensions),
                    std::vector<float>(count, 0.5f));
  }
  // The output, of the declared dimensions.
  uint32_t operation(OperationType type, std::vector<uint32_t> inputs, Dimensions dimensions,
                     OperandType output = OperandType::kTensorFloat32) {
    const uint32_t made = add(output, std::move(dimensions), Lifetime::kTemporary, "out");
    model_.main().operations.push_back({type, std::move(inputs), {made}, "op"});
    return made;
  }
  uint32_t reshape(uint32_t from, std::vector<int32_t> shape, Dimensions declared) {
    return operation(OperationType::kReshape, {from, ints(std::move(shape))}, std::move(declared));
  }
  uint32_t softmax(uint32_t from, Dimensions declared) {
    const uint32_t beta = constant(OperandType::kFloat32, {}, std::vector<float>{1.0f});
    return operation(OperationType::kSoftmax, {from, beta}, std::move(declared));
  }

  // The shape of the last output for these inputs; the error's sentence where there is none.
  std::string resized(std::vector<Dimensions> now) {
    finish();
    graph::Subgraph& main = model_.main();
    std::vector<Dimensions> before;
    for (const uint32_t index : main.inputs) before.push_back(main.operands[index].dimensions);
    const auto made = resize(model_, before, now);
    if (!made) return made.error().toString();
    EXPECT_TRUE(validateOperations(**made));
    // What is unchanged stays the same.
    EXPECT_TRUE(resize(model_, before, before));
    const graph::Subgraph& result = (*made)->main();
    EXPECT_EQ((*made)->pools.size(), model_.pools.size());
    return graph::describeDimensions(result.operands[result.outputs[0]].dimensions);
  }

  // The same by inferAgain().
  std::string inferredAgain(std::vector<Dimensions> now) {
    finish();
    const auto made = inferAgain(model_, now);
    if (!made) return made.error().toString();
    EXPECT_TRUE(validateOperations(**made));
    const graph::Subgraph& result = (*made)->main();
    return graph::describeDimensions(result.operands[result.outputs[0]].dimensions);
  }

  // The sentence with which specialize() or specializePartly() refuses these inputs.
  std::string refusal(std::vector<Dimensions> now, bool isPartly) {
    finish();
    if (isPartly) {
      const auto made = specializePartly(model_, now);
      return made ? "" : made.error().toString();
    }
    const auto made = specialize(model_, now);
    return made ? "" : made.error().toString();
  }

 private:
  void finish() {
    graph::Subgraph& main = model_.main();
    main.operands.back().lifetime = Lifetime::kSubgraphOutput;
    main.outputs = {static_cast<uint32_t>(main.operands.size() - 1)};
    const Status valid = graph::validate(model_);
    EXPECT_TRUE(valid) << valid.error().toString();
  }

  graph::Model model_;
};

std::string reshaped(const Dimensions& from, const std::vector<int32_t>& shape,
                     const Dimensions& declared, const Dimensions& now) {
  Graph graph;
  graph.reshape(graph.input(from), shape, declared);
  return graph.resized({now});
}

TEST(InferAgainTest, ConstantsStayAndRanksMayChange) {
  const auto reshape = [](const std::vector<int32_t>& shape, const Dimensions& now) {
    Graph graph;
    graph.reshape(graph.input({1, 7, 7, 8}), shape, {1, 392});
    return graph.inferredAgain({now});
  };
  EXPECT_EQ(reshape({1, -1}, {4, 7, 7, 8}), "[1,1568]");
  EXPECT_EQ(reshape({1, 392}, {8, 49}), "[1,392]");
  EXPECT_THAT(reshape({1, 392}, {4, 7, 7, 8}), HasSubstr("RESHAPE"));
  Graph softmax;
  softmax.softmax(softmax.input({1, 4}), {1, 4});
  EXPECT_EQ(softmax.inferredAgain({{2, 3, 4}}), "[2,3,4]");
  EXPECT_THAT(softmax.inferredAgain({{2, 0}}), HasSubstr("has no elements"));
  EXPECT_THAT(softmax.inferredAgain({{2}, {3}}), HasSubstr("the model has 1"));
}

TEST(InferAgainTest, ALayerKeepsItsDimensions) {
  const auto layer = [](const Dimensions& output, const Dimensions& now) {
    Graph graph;
    const uint32_t input = graph.input({1, 2, 4});
    graph.operation(OperationType::kFullyConnected,
                    {input, graph.floats({3, 4}), graph.floats({3}), graph.scalar(0)}, output);
    return graph.inferredAgain({now});
  };
  EXPECT_EQ(layer({1, 2, 3}, {2, 5, 4}), "[2,5,3]");
  EXPECT_EQ(layer({2, 3}, {2, 5, 4}), "[10,3]");
  EXPECT_EQ(layer({2, 3}, {6, 4}), "[6,3]");
}

TEST(FollowedShapesTest, AReshapeFollowsTheBatch) {
  EXPECT_EQ(reshaped({1, 7, 7, 8}, {1, 392}, {1, 392}, {4, 7, 7, 8}), "[4,392]");
  EXPECT_EQ(reshaped({1, 1, 1, 10}, {1, 10}, {1, 10}, {4, 1, 1, 10}), "[4,10]");
  // The open dimension would take the batch.
  EXPECT_EQ(reshaped({1, 7, 7, 8}, {1, -1}, {1, 392}, {4, 7, 7, 8}), "[4,392]");
  EXPECT_EQ(reshaped({2, 6}, {2, 3, 2}, {2, 3, 2}, {8, 6}), "[8,3,2]");
  EXPECT_EQ(reshaped({2, 6}, {4, 3}, {4, 3}, {8, 6}), "[16,3]");
}

TEST(FollowedShapesTest, AReshapeFollowsThePicture) {
  EXPECT_EQ(reshaped({1, 5, 4, 6}, {1, 40, 3}, {1, 40, 3}, {1, 10, 7, 6}), "[1,140,3]");
  EXPECT_EQ(reshaped({1, 5, 4, 6}, {1, -1, 3}, {1, 40, 3}, {2, 10, 7, 6}), "[2,140,3]");
  EXPECT_THAT(reshaped({1, 5, 6}, {1, 3, 10}, {1, 3, 10}, {1, 7, 6}),
              HasSubstr("no certain place"));
  // [1,2,2,10] could be four times ten or one of forty.
  EXPECT_THAT(reshaped({1, 1, 1, 10}, {1, 10}, {1, 10}, {1, 2, 2, 10}),
              HasSubstr("RESHAPE \"op\" cannot follow: its input \"in\" is [1,2,2,10] in place of "
                        "[1,1,1,10], and its output \"out\" is [1,10] by a constant"));
}

// Queries of several heads for each head of keys: 9 heads of 128 tokens become 3 of 384, and back.
TEST(FollowedShapesTest, AReshapeFollowsAFactor) {
  EXPECT_EQ(reshaped({1, 9, 128, 64}, {1, 3, 384, 64}, {1, 3, 384, 64}, {1, 9, 32, 64}),
            "[1,3,96,64]");
  EXPECT_EQ(reshaped({1, 3, 384, 64}, {1, 9, 128, 64}, {1, 9, 128, 64}, {1, 3, 96, 64}),
            "[1,9,32,64]");
  EXPECT_EQ(reshaped({1, 384, 5}, {1, 128, 3, 5}, {1, 128, 3, 5}, {1, 96, 5}), "[1,32,3,5]");
  // It could be 8 heads of 128 tokens or 2 of 512 that become fewer.
  EXPECT_THAT(reshaped({1, 2, 512, 64}, {1, 8, 128, 64}, {1, 8, 128, 64}, {1, 2, 128, 64}),
              HasSubstr("no certain place"));
  EXPECT_THAT(reshaped({1, 1, 512, 64}, {1, 4, 128, 64}, {1, 4, 128, 64}, {1, 1, 128, 64}),
              HasSubstr("no certain place"));
  // More tokens are possible with each of the factors.
  EXPECT_THAT(reshaped({1, 1, 384, 64}, {1, 3, 128, 64}, {1, 3, 128, 64}, {1, 1, 768, 64}),
              HasSubstr("no certain place"));
}

// [1,6,8] becomes rows of 8 for a layer, and then a batch again.
TEST(FollowedShapesTest, ABatchThatWasJoinedComesBack) {
  Graph graph;
  const uint32_t rows = graph.reshape(graph.input({1, 6, 8}), {6, 8}, {6, 8});
  const uint32_t layer =
      graph.operation(OperationType::kFullyConnected,
                      {rows, graph.floats({5, 8}), graph.floats({5}), graph.scalar(0)}, {6, 5});
  const uint32_t scores = graph.softmax(layer, {6, 5});
  graph.reshape(scores, {1, 6, 5}, {1, 6, 5});
  EXPECT_EQ(graph.resized({{4, 6, 8}}), "[4,6,5]");
}

TEST(FollowedShapesTest, PartsAreNotMixed) {
  {
    Graph graph;
    graph.softmax(graph.reshape(graph.input({1, 6}), {6}, {6}), {6});
    EXPECT_THAT(graph.resized({{4, 6}}), HasSubstr("may mix"));
  }
  for (const int32_t axis : {0, 1}) {
    Graph graph;
    graph.operation(OperationType::kMean,
                    {graph.input({1, 6, 3}), graph.ints({axis}), graph.scalar(0)},
                    axis == 0 ? Dimensions{6, 3} : Dimensions{1, 3});
    if (axis == 0)
      EXPECT_THAT(graph.resized({{4, 6, 3}}), HasSubstr("may mix"));
    else
      EXPECT_EQ(graph.resized({{4, 6, 3}}), "[4,3]");
  }
  {
    // Along a dimension of two the model itself mixes.
    Graph graph;
    graph.operation(OperationType::kMean, {graph.input({2, 6}), graph.ints({0}), graph.scalar(0)},
                    {6});
    EXPECT_EQ(graph.resized({{4, 6}}), "[6]");
  }
  {
    // One picture plus each of four constants; four pictures would have one each.
    Graph graph;
    graph.operation(OperationType::kAdd,
                    {graph.input({1, 3}), graph.floats({4, 3}), graph.scalar(0)}, {4, 3});
    EXPECT_THAT(graph.resized({{4, 3}}), HasSubstr("may mix"));
  }
  {
    Graph graph;
    const uint32_t x = graph.input({1, 6});
    graph.operation(OperationType::kConcatenation, {x, x, graph.scalar(0)}, {2, 6});
    EXPECT_THAT(graph.resized({{4, 6}}), HasSubstr("may mix"));
  }
  {
    Graph graph;
    const uint32_t rows = graph.reshape(graph.input({1, 6, 8}), {6, 8}, {6, 8});
    graph.operation(OperationType::kBatchMatmul, {rows, rows, graph.flag(false), graph.flag(true)},
                    {6, 6});
    EXPECT_THAT(graph.resized({{4, 6, 8}}), HasSubstr("may mix"));
  }
}

TEST(FollowedShapesTest, ALayerKeepsItsRows) {
  const auto layer = [](const Dimensions& from, const Dimensions& now) {
    Graph graph;
    graph.operation(OperationType::kFullyConnected,
                    {graph.input(from), graph.floats({5, 8}), graph.floats({5}), graph.scalar(0)},
                    {from[0], 5});
    return graph.resized({now});
  };
  EXPECT_EQ(layer({1, 8}, {4, 8}), "[4,5]");
  EXPECT_EQ(layer({1, 2, 4}, {4, 2, 4}), "[4,5]");
  Graph rows;
  rows.operation(OperationType::kFullyConnected,
                 {rows.input({1, 2, 4}), rows.floats({5, 4}), rows.floats({5}), rows.scalar(0)},
                 {1, 2, 5});
  EXPECT_EQ(rows.resized({{4, 2, 4}}), "[4,2,5]");
  // Twice as many elements are not two pictures.
  EXPECT_THAT(layer({1, 8}, {1, 16}), HasSubstr("rows of 8"));
  EXPECT_THAT(layer({1, 2, 4}, {1, 4, 4}), HasSubstr("rows of 8"));
}

TEST(FollowedShapesTest, ADimensionOfOneComesBeforeOrBehindTheParts) {
  const auto expanded = [](int32_t axis, const Dimensions& declared) {
    Graph graph;
    graph.operation(OperationType::kExpandDims, {graph.input({1, 6}), graph.scalar(axis)},
                    declared);
    return graph.resized({{4, 6}});
  };
  EXPECT_EQ(expanded(0, {1, 1, 6}), "[1,4,6]");
  EXPECT_EQ(expanded(1, {1, 1, 6}), "[4,1,6]");
  EXPECT_EQ(expanded(-1, {1, 6, 1}), "[4,6,1]");
}

TEST(FollowedShapesTest, SlicesTakeTheWhole) {
  const auto slice = [](std::vector<int32_t> begins, std::vector<int32_t> sizes,
                        const Dimensions& declared, const Dimensions& now) {
    Graph graph;
    graph.operation(
        OperationType::kSlice,
        {graph.input({1, 10, 3}), graph.ints(std::move(begins)), graph.ints(std::move(sizes))},
        declared);
    return graph.resized({now});
  };
  EXPECT_EQ(slice({0, 0, 1}, {1, 10, 2}, {1, 10, 2}, {4, 20, 3}), "[4,20,2]");
  EXPECT_EQ(slice({0, 2, 0}, {1, 3, 3}, {1, 3, 3}, {4, 20, 3}), "[4,3,3]");
  EXPECT_EQ(slice({0, 2, 0}, {-1, -1, -1}, {1, 8, 3}, {4, 20, 3}), "[4,18,3]");
  EXPECT_THAT(slice({0, 2, 0}, {1, 8, 3}, {1, 8, 3}, {1, 20, 3}), HasSubstr("up to the end"));

  const auto strided = [](std::vector<int32_t> begins, std::vector<int32_t> ends, int32_t endMask,
                          int32_t shrinkMask, const Dimensions& declared, const Dimensions& now) {
    Graph graph;
    graph.operation(
        OperationType::kStridedSlice,
        {graph.input({1, 10}), graph.ints(std::move(begins)), graph.ints(std::move(ends)),
         graph.ints({1, 1}), graph.scalar(0), graph.scalar(endMask), graph.scalar(shrinkMask)},
        declared);
    return graph.resized({now});
  };
  EXPECT_EQ(strided({0, 0}, {1, 10}, 0, 0, {1, 10}, {4, 20}), "[4,20]");
  EXPECT_EQ(strided({0, 3}, {1, 0}, 2, 0, {1, 7}, {4, 20}), "[4,17]");
  EXPECT_EQ(strided({0, 0}, {1, -1}, 0, 0, {1, 9}, {4, 20}), "[4,19]");
  EXPECT_EQ(strided({0, 9}, {1, 10}, 0, 2, {1}, {4, 10}), "[4]");
  EXPECT_THAT(strided({0, 3}, {1, 10}, 0, 0, {1, 7}, {1, 20}), HasSubstr("which was the end"));
  // The first picture alone.
  EXPECT_THAT(strided({0, 0}, {1, 10}, 0, 1, {10}, {4, 10}), HasSubstr("may mix"));
}

TEST(FollowedShapesTest, OtherConstantsOfShapes) {
  {
    Graph graph;
    graph.operation(OperationType::kBroadcastTo, {graph.input({1, 1, 3}), graph.ints({1, 5, 3})},
                    {1, 5, 3});
    EXPECT_EQ(graph.resized({{4, 1, 3}}), "[4,5,3]");
    EXPECT_THAT(graph.resized({{1, 2, 3}}), HasSubstr("repeats"));
  }
  for (const uint32_t size : {6u, 7u}) {  // 3 * 2, and (3 - 1) * 2 + 3
    Graph graph;
    const auto side = static_cast<int32_t>(size);
    graph.operation(OperationType::kTransposeConv2d,
                    {graph.input({1, 3, 3, 2}), graph.floats({4, 3, 3, 2}), graph.floats({4}),
                     graph.ints({1, side, side, 4}), graph.scalar(size == 6 ? 1 : 2),
                     graph.scalar(2), graph.scalar(2), graph.scalar(0), graph.flag(false)},
                    {1, size, size, 4});
    EXPECT_EQ(graph.resized({{4, 5, 3, 2}}), size == 6 ? "[4,10,6,4]" : "[4,11,7,4]");
  }
  {
    // A vision transformer's class token.
    Graph graph;
    graph.operation(OperationType::kConcatenation,
                    {graph.floats({1, 1, 8}), graph.input({1, 6, 8}), graph.scalar(1)}, {1, 7, 8});
    EXPECT_EQ(graph.resized({{4, 6, 8}}), "[4,7,8]");
  }
}

TEST(FollowedShapesTest, ConstantPlacesDoNotFollow) {
  for (const int32_t axis : {1, 2}) {
    Graph graph;
    graph.operation(OperationType::kGather,
                    {graph.input({1, 4, 4}), graph.scalar(axis), graph.ints({3, 1})},
                    axis == 1 ? Dimensions{1, 2, 4} : Dimensions{1, 4, 2});
    if (axis == 1)
      EXPECT_THAT(graph.resized({{1, 8, 4}}), HasSubstr("constant places"));
    else
      EXPECT_EQ(graph.resized({{3, 8, 4}}), "[3,8,2]");
  }
}

TEST(FollowedShapesTest, ARankStays) {
  Graph graph;
  const uint32_t none = graph.add(OperandType::kTensorInt32, {}, Lifetime::kNoValue);
  graph.operation(OperationType::kSqueeze, {graph.input({1, 1, 6}), none}, {6});
  EXPECT_THAT(graph.resized({{4, 1, 6}}), HasSubstr("[4,1,6] in place of [1,1,6]"));
}

// Only inferAgain() gives an output of rank 0 another rank.
TEST(FollowedShapesTest, ARankOfZeroStays) {
  const auto mean = [] {
    Graph graph;
    graph.operation(OperationType::kMean, {graph.input({6}), graph.ints({0}), graph.scalar(1)}, {});
    return graph;
  };
  EXPECT_THAT(mean().refusal({{6}}, false), HasSubstr("MEAN"));
  EXPECT_THAT(mean().refusal({{6}}, true), HasSubstr("MEAN"));
  EXPECT_EQ(mean().inferredAgain({{6}}), "[1]");
}

TEST(FollowedShapesTest, WhatContradictsNamesTheChange) {
  Graph graph;
  graph.operation(OperationType::kAdd, {graph.input({1, 6}), graph.floats({6}), graph.scalar(0)},
                  {1, 6});
  EXPECT_THAT(graph.resized({{1, 7}}), HasSubstr("its input \"in\" is [1,7] in place of [1,6]"));
}

}  // namespace
}  // namespace hearth::ops
