// SPDX-License-Identifier: Apache-2.0
#include "ops/unread_pixels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "ops/interpreter.h"
#include "ops/testing/small_model.h"

namespace hearth::ops {
namespace {

using graph::Lifetime;

constexpr uint32_t kChannels = 3;
constexpr int32_t kSame = 1, kValid = 2;
constexpr int32_t kNone = 0, kRelu = 1;

std::vector<uint8_t> randomBytes(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(generator());
  return bytes;
}

std::vector<float> randomFloats(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<float> values(count);
  for (float& value : values) value = std::uniform_real_distribution<float>(-1, 1)(generator);
  return values;
}

// A model of convolutions over float32 or int8 images of kChannels channels.
struct Network : SmallModel {
  explicit Network(OperandType imageType = OperandType::kTensorFloat32) : type(imageType) {}

  uint32_t image(Lifetime lifetime, Dimensions dimensions) {
    const uint32_t index = add(type, std::move(dimensions), lifetime);
    if (type != OperandType::kTensorFloat32) setQuantization(index, 0.5f, 3);
    return index;
  }
  uint32_t inside(uint32_t height, uint32_t width, uint32_t batch = 1) {
    return image(Lifetime::kTemporary, {batch, height, width, kChannels});
  }
  uint32_t result(uint32_t height, uint32_t width, uint32_t batch = 1) {
    return image(Lifetime::kSubgraphOutput, {batch, height, width, kChannels});
  }

  struct Form {
    uint32_t filterHeight = 1, filterWidth = 1;
    int32_t strideHeight = 1, strideWidth = 1;
    int32_t padding = kSame;
    std::vector<int32_t> sides = {};  // left, right, top, bottom, in place of `padding`
    int32_t activation = kNone;
  };
  void convolution(uint32_t from, uint32_t to, const Form& form) {
    const Dimensions shape = {kChannels, form.filterHeight, form.filterWidth, kChannels};
    const size_t count = size_t{form.filterHeight} * form.filterWidth * kChannels * kChannels;
    const unsigned seed = ++filters;
    uint32_t filter;
    uint32_t bias;
    if (type == OperandType::kTensorFloat32) {
      filter = tensor(type, shape, randomFloats(count, seed));
      bias = tensor(type, {kChannels}, randomFloats(kChannels, 100 + seed));
    } else {
      filter = tensor(type, shape, randomBytes(count, seed));
      setQuantization(filter, 0.01f, 0);
      bias = tensor(OperandType::kTensorInt32, {kChannels}, std::vector<int32_t>{40, -7, 0});
      setQuantization(bias, 0.5f * 0.01f, 0);
    }
    std::vector<uint32_t> inputs = {from, filter, bias};
    if (form.sides.empty()) inputs.push_back(scalar(form.padding));
    for (const int32_t side : form.sides) inputs.push_back(scalar(side));
    for (const int32_t value : {form.strideWidth, form.strideHeight, form.activation})
      inputs.push_back(scalar(value));
    operation(OperationType::kConv2d, std::move(inputs), {to});
  }
  void sum(uint32_t a, uint32_t b, uint32_t to) {
    operation(OperationType::kAdd, {a, b, scalar(kRelu)}, {to});
  }

  OperandType type;
  unsigned filters = 0;
};

// What a model gives for random images of this shape.
std::vector<std::vector<uint8_t>> resultsOf(std::shared_ptr<const graph::Model> model,
                                            const Dimensions& shape) {
  const size_t count = size_t{shape[0]} * shape[1] * shape[2] * shape[3];
  std::vector<float> floats = randomFloats(count, 17);
  std::vector<uint8_t> bytes = randomBytes(count, 17);
  const bool isFloat =
      model->main().operands[model->main().inputs[0]].type == OperandType::kTensorFloat32;
  RunArgument input{bytes.data(), bytes.size(), shape, true};
  if (isFloat) input = {floats.data(), floats.size() * sizeof(float), shape, true};
  std::vector<std::vector<uint8_t>> results(model->main().outputs.size());
  std::vector<RunArgument> outputs;
  for (std::vector<uint8_t>& result : results) {
    result.resize(count * sizeof(float));
    outputs.push_back({result.data(), result.size(), {}, true});
  }
  const auto interpreter = Interpreter::create(std::move(model), {});
  EXPECT_TRUE(interpreter) << interpreter.error().toString();
  if (!interpreter) return {};
  const RunResult ran = (*interpreter)->run({input}, outputs, {});
  EXPECT_TRUE(ran.status) << ran.status.error().toString();
  for (size_t i = 0; i < results.size(); ++i) {
    size_t elements = isFloat ? sizeof(float) : 1;
    for (const uint32_t dimension : ran.outputShapes[i].dimensions) elements *= dimension;
    results[i].resize(elements);
  }
  return results;
}

// The rewritten model, whose results have to be those of `network`.
std::shared_ptr<const graph::Model> rewritten(Network& network, const Dimensions& shape) {
  const auto before = std::make_shared<const graph::Model>(network.model());
  const auto after = withoutUnreadPixels(before);
  EXPECT_EQ(resultsOf(after, shape), resultsOf(before, shape));
  return after;
}

bool isChanged(Network& network, const Dimensions& shape = {1, 6, 6, kChannels}) {
  const size_t before = network.model().main().operands.size();
  return rewritten(network, shape)->main().operands.size() != before;
}

Dimensions dimensionsOf(const graph::Model& model, uint32_t operand) {
  return model.main().operands[operand].dimensions;
}

size_t countOf(const graph::Model& model, OperationType type) {
  return static_cast<size_t>(
      std::ranges::count(model.main().operations, type, &graph::Operation::type));
}

// The end of a stage of a ResNet, and the two layers that begin the next one.
struct EndOfStage : Network {
  EndOfStage(OperandType imageType, uint32_t height, uint32_t width, Form window = {3, 3},
             int32_t strideHeight = 2, int32_t strideWidth = 2, uint32_t batch = 1)
      : Network(imageType) {
    const uint32_t data = image(Lifetime::kSubgraphInput, {batch, height, width, kChannels});
    shortcut = inside(height, width, batch);
    convolution(data, shortcut, {.activation = kRelu});
    windowed = inside(height, width, batch);
    convolution(shortcut, windowed, window);
    last = inside(height, width, batch);
    convolution(windowed, last, {});
    total = inside(height, width, batch);
    sum(last, shortcut, total);
    for (const int32_t padding : {kSame, kValid}) {
      const auto rows =
          static_cast<uint32_t>((static_cast<int32_t>(height) - 1) / strideHeight + 1);
      const auto columns =
          static_cast<uint32_t>((static_cast<int32_t>(width) - 1) / strideWidth + 1);
      convolution(total, result(rows, columns, batch),
                  {.strideHeight = strideHeight, .strideWidth = strideWidth, .padding = padding});
    }
  }

  uint32_t shortcut, windowed, last, total;
};

TEST(UnreadPixelsTest, AreNotComputedAtTheEndOfAStage) {
  for (const OperandType type :
       {OperandType::kTensorFloat32, OperandType::kTensorQuant8AsymmSigned}) {
    for (const uint32_t side : {1u, 2u, 5u, 6u}) {
      SCOPED_TRACE(side);
      EndOfStage network(type, side, side + 1);
      const auto model = rewritten(network, {1, side, side + 1, kChannels});
      const Dimensions left = {1, (side + 1) / 2, (side + 2) / 2, kChannels};
      EXPECT_EQ(dimensionsOf(*model, network.windowed), left);
      EXPECT_EQ(dimensionsOf(*model, network.last), left);
      EXPECT_EQ(dimensionsOf(*model, network.total), left);
      // Two layers read it.
      EXPECT_EQ(dimensionsOf(*model, network.shortcut), (Dimensions{1, side, side + 1, kChannels}));
      EXPECT_EQ(countOf(*model, OperationType::kStridedSlice), 1u);
    }
  }
}

TEST(UnreadPixelsTest, OfWindowsThatAreNotSquare) {
  for (const auto& [height, width] : {std::pair<uint32_t, uint32_t>{1, 4}, {2, 3}, {5, 1}}) {
    for (const auto& [rows, columns] : {std::pair{1, 2}, {3, 2}, {2, 1}}) {
      EndOfStage network(OperandType::kTensorFloat32, 7, 8, {height, width}, rows, columns);
      const auto model = rewritten(network, {1, 7, 8, kChannels});
      const auto left = [](uint32_t count, int step) {
        return (count + static_cast<uint32_t>(step) - 1) / static_cast<uint32_t>(step);
      };
      EXPECT_EQ(dimensionsOf(*model, network.windowed),
                (Dimensions{1, left(7, rows), left(8, columns), kChannels}));
    }
  }
}

TEST(UnreadPixelsTest, OfExplicitPadding) {
  EndOfStage network(OperandType::kTensorQuant8AsymmSigned, 6, 6,
                     {.filterHeight = 3, .filterWidth = 4, .sides = {2, 1, 0, 2}});
  const auto model = rewritten(network, {1, 6, 6, kChannels});
  EXPECT_EQ(dimensionsOf(*model, network.windowed), (Dimensions{1, 3, 3, kChannels}));
}

TEST(UnreadPixelsTest, OfAnUnknownBatch) {
  EndOfStage network(OperandType::kTensorFloat32, 5, 6, {3, 3}, 2, 2, 0);
  for (const uint32_t batch : {1u, 3u}) {
    const auto model = rewritten(network, {batch, 5, 6, kChannels});
    EXPECT_EQ(dimensionsOf(*model, network.windowed), (Dimensions{0, 3, 3, kChannels}));
  }
}

TEST(UnreadPixelsTest, StepsMultiply) {
  Network network;
  const uint32_t data = network.image(Lifetime::kSubgraphInput, {1, 9, 9, kChannels});
  const uint32_t first = network.inside(9, 9);
  network.convolution(data, first, {3, 3});
  const uint32_t second = network.inside(5, 5);
  network.convolution(first, second, {.strideHeight = 2, .strideWidth = 2});
  network.convolution(second, network.result(3, 3), {.strideHeight = 2, .strideWidth = 2});
  const auto model = rewritten(network, {1, 9, 9, kChannels});
  EXPECT_EQ(dimensionsOf(*model, first), (Dimensions{1, 3, 3, kChannels}));
  EXPECT_EQ(dimensionsOf(*model, second), (Dimensions{1, 3, 3, kChannels}));
  EXPECT_EQ(countOf(*model, OperationType::kStridedSlice), 0u);
}

TEST(UnreadPixelsTest, FactorsForEachChannelStay) {
  for (const Dimensions& shape : {Dimensions{kChannels}, Dimensions{1, 1, 1, kChannels}}) {
    Network network;
    const uint32_t data = network.image(Lifetime::kSubgraphInput, {1, 6, 6, kChannels});
    const uint32_t convolved = network.inside(6, 6);
    network.convolution(data, convolved, {3, 3});
    const uint32_t scaled = network.inside(6, 6);
    const uint32_t factors =
        network.tensor(OperandType::kTensorFloat32, shape, randomFloats(kChannels, 5));
    network.operation(OperationType::kMul, {convolved, factors, network.scalar(kNone)}, {scaled});
    const uint32_t clamped = network.inside(6, 6);
    network.operation(OperationType::kRelu6, {scaled}, {clamped});
    network.convolution(clamped, network.result(3, 3), {.strideHeight = 2, .strideWidth = 2});
    const auto model = rewritten(network, {1, 6, 6, kChannels});
    EXPECT_EQ(dimensionsOf(*model, convolved), (Dimensions{1, 3, 3, kChannels}));
    EXPECT_EQ(dimensionsOf(*model, clamped), (Dimensions{1, 3, 3, kChannels}));
    EXPECT_EQ(countOf(*model, OperationType::kStridedSlice), 0u);
  }
}

// data -> CONV_2D -> `change` -> CONV_2D with a step of two.
bool isChangedBetween(Network::Form first, Network::Form second,
                      const std::function<void(Network&, uint32_t convolved)>& change = {}) {
  Network network;
  const uint32_t data = network.image(Lifetime::kSubgraphInput, {1, 6, 6, kChannels});
  const auto size = [](int32_t stride) {
    return static_cast<uint32_t>((6 - 1) / stride + 1);
  };
  const uint32_t height = size(first.strideHeight), width = size(first.strideWidth);
  const uint32_t convolved = network.inside(height, width);
  network.convolution(data, convolved, first);
  if (change) change(network, convolved);
  const uint32_t output = network.add(network.type, {}, Lifetime::kSubgraphOutput);
  network.convolution(convolved, output, second);
  return isChanged(network);
}

TEST(UnreadPixelsTest, WhatIsReadIsComputed) {
  const Network::Form window = {3, 3}, step = {.strideHeight = 2, .strideWidth = 2};
  EXPECT_TRUE(isChangedBetween(window, step));
  EXPECT_FALSE(isChangedBetween(window, {}));
  // Windows of several pixels read what lies between their steps.
  EXPECT_FALSE(isChangedBetween(window, {2, 1, 2, 2}));
  EXPECT_FALSE(isChangedBetween(window, {1, 1, 2, 2, kValid, {0, 1, 1, 0}}));
  // The padding of a window with a stride depends on the size of the image.
  EXPECT_FALSE(isChangedBetween({3, 3, 2, 2}, step));
  EXPECT_TRUE(isChangedBetween({1, 1, 2, 2}, step));
}

TEST(UnreadPixelsTest, WhatOthersReadIsComputed) {
  const Network::Form window = {3, 3}, step = {.strideHeight = 2, .strideWidth = 2};
  const auto isChangedBeside = [&](const std::function<void(Network&, uint32_t)>& reader) {
    return isChangedBetween(window, step, reader);
  };
  EXPECT_FALSE(isChangedBeside([](Network& network, uint32_t convolved) {
    network.operation(OperationType::kRelu, {convolved}, {network.result(6, 6)});
  }));
  EXPECT_FALSE(isChangedBeside([](Network& network, uint32_t convolved) {
    network.convolution(convolved, network.result(2, 2), {.strideHeight = 3, .strideWidth = 3});
  }));
  EXPECT_TRUE(isChangedBeside([](Network& network, uint32_t convolved) {
    network.convolution(convolved, network.result(3, 3), {.strideHeight = 2, .strideWidth = 2});
  }));
}

TEST(UnreadPixelsTest, OutputsOfTheModelAreComputed) {
  Network network;
  const uint32_t data = network.image(Lifetime::kSubgraphInput, {1, 6, 6, kChannels});
  const uint32_t convolved = network.result(6, 6);
  network.convolution(data, convolved, {3, 3});
  network.convolution(convolved, network.result(3, 3), {.strideHeight = 2, .strideWidth = 2});
  EXPECT_FALSE(isChanged(network));
}

TEST(UnreadPixelsTest, WhatIsRepeatedOverRowsIsComputed) {
  Network network;
  const uint32_t data = network.image(Lifetime::kSubgraphInput, {1, 6, 6, kChannels});
  const uint32_t convolved = network.inside(6, 6);
  network.convolution(data, convolved, {3, 3});
  const uint32_t added = network.inside(6, 6);
  const uint32_t columns = network.tensor(OperandType::kTensorFloat32, {1, 1, 6, kChannels},
                                          randomFloats(6 * kChannels, 3));
  network.sum(convolved, columns, added);
  network.convolution(added, network.result(3, 3), {.strideHeight = 2, .strideWidth = 2});
  EXPECT_FALSE(isChanged(network));
}

}  // namespace
}  // namespace hearth::ops
