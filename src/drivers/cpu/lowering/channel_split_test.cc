// SPDX-License-Identifier: Apache-2.0
// Layers that are divided into parts compute the same as in one.
#include "drivers/cpu/lowering/channel_split.h"

#include <gtest/gtest.h>

#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

TEST(ChannelSplitTest, SmallLayersAreOne) {
  EXPECT_EQ(channelParts(10, 4), (std::vector<ChannelRange>{{0, 10}}));
  EXPECT_EQ(channelParts(4096, 16383), (std::vector<ChannelRange>{{0, 4096}}));
  EXPECT_EQ(channelParts(1, size_t{1} << 40), (std::vector<ChannelRange>{{0, 1}}));
  // 59 MB, with a lower limit for dividing.
  EXPECT_EQ(channelParts(1280, 46080, kChannelPart + 1),
            (std::vector<ChannelRange>{{0, 640}, {640, 640}}));
  // A layer that must not be divided gives 0 bytes for each channel.
  EXPECT_EQ(channelParts(1'000'000'000, 0), (std::vector<ChannelRange>{{0, 1'000'000'000}}));
}

TEST(ChannelSplitTest, PartsOfLargeOnesFollowEachOther) {
  constexpr size_t kMost = size_t{36} << 20;
  for (const auto& [channels, bytes] :
       {std::pair<size_t, size_t>{4096, 16384}, {256'000, 2048}, {256'001, 2049}, {70'001, 1000}}) {
    const std::vector<ChannelRange> parts = channelParts(channels, bytes);
    EXPECT_GT(parts.size(), 1u);
    size_t next = 0;
    for (const ChannelRange& part : parts) {
      EXPECT_EQ(part.first, next);
      EXPECT_EQ(part.first % 64, 0u);
      EXPECT_GT(part.count, 0u);
      EXPECT_LE(part.count * bytes, kMost);
      next = part.first + part.count;
    }
    EXPECT_EQ(next, channels);
  }
}

// The last part is smaller than the others, and no multiple of any kernel's tile.
constexpr uint32_t kOutputs = 66'003;

struct LargeLayer {
  OperandType filter;
  uint32_t inputs;
  uint32_t block = 0;  // inputs that share a scale; 0: one scale for the layer or for each output
};

class LargeLayerTest : public testing::TestWithParam<LargeLayer> {};

TEST_P(LargeLayerTest, EqualsTheReference) {
  constexpr uint32_t kRows = 2;
  const auto [type, inputs, block] = GetParam();
  ModelBuilder builder;
  const uint32_t input = builder.input(kFloat, {kRows, inputs});
  const size_t count = size_t{kOutputs} * inputs;
  uint32_t filter = 0;
  size_t channelBytes = inputs;
  if (type == kFloat) {
    filter = builder.constant(kFloat, {kOutputs, inputs}, randomFloats(count, 1));
    channelBytes *= sizeof(float);
  } else {
    const bool isInt4 = type == OperandType::kTensorInt4;
    if (isInt4) channelBytes /= 2;
    const Bytes bytes = randomBytes(isInt4 ? count / 2 : count, 1);
    const bool isPerChannel = type == OperandType::kTensorQuant8SymmPerChannel;
    const bool hasOneScale = !isPerChannel && block == 0;
    filter = builder.constant(type, {kOutputs, inputs}, bytes, hasOneScale ? 0.02f : 0.0f);
  }
  ASSERT_GT(channelParts(kOutputs, channelBytes).size(), 2u);
  const uint32_t bias = builder.constant(kFloat, {kOutputs}, randomFloats(kOutputs, 2));
  std::vector<uint32_t> inputOperands = {input, filter, bias, builder.scalar(0)};
  if (block != 0) {
    const Dimensions scales = {kOutputs, inputs / block};
    inputOperands.push_back(
        builder.constant(kFloat, scales, randomFloats(countOf(scales), 4, 0.02f)));
  }
  builder.operation(OperationType::kFullyConnected, inputOperands,
                    {builder.output(kFloat, {kRows, kOutputs})});
  graph::Model model = builder.model();
  if (type == OperandType::kTensorQuant8SymmPerChannel)
    model.main().operands[filter].perChannel.scales = risingScales(kOutputs, 1e-6f);
  EXPECT_EQ(differenceFromReference(model, {bytesOf(randomFloats(size_t{kRows} * inputs, 3))},
                                    block != 0 ? "own"
                                    : type == kFloat
                                        ? floatLayerKernel()
                                        : hybridLayerKernel(type == OperandType::kTensorInt4, true),
                                    1e-5f),
            "");
}

INSTANTIATE_TEST_SUITE_P(Types, LargeLayerTest,
                         testing::Values(LargeLayer{kFloat, 260},
                                         LargeLayer{OperandType::kTensorQuant8SymmPerChannel, 1030},
                                         LargeLayer{OperandType::kTensorInt4, 2050},
                                         LargeLayer{OperandType::kTensorInt4, 2080, 1040}));

}  // namespace
}  // namespace hearth::cpu
