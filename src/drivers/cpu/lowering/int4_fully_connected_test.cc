// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

struct BlockCase {
  uint32_t rows, inputs, outputs, block;
  bool areScalesHalf, hasBias;
  int32_t activation = 0;
};

class BlockFullyConnectedTest : public testing::TestWithParam<BlockCase> {};

TEST_P(BlockFullyConnectedTest, EqualsTheReference) {
  const BlockCase& c = GetParam();
  ModelBuilder builder;
  const uint32_t input = builder.input(kFloat, {c.rows, c.inputs});
  const uint32_t filter = builder.constant(OperandType::kTensorInt4, {c.outputs, c.inputs},
                                           randomBytes(size_t{c.outputs} * c.inputs / 2, 3));
  const uint32_t blocks = c.inputs / c.block;
  std::vector<float> scales = randomFloats(size_t{c.outputs} * blocks, 4, 0.02f);
  std::vector<_Float16> halfScales;
  for (const float one : scales) halfScales.push_back(static_cast<_Float16>(one));
  const uint32_t scale = c.areScalesHalf ? builder.constant(OperandType::kTensorFloat16,
                                                            {c.outputs, blocks}, halfScales)
                                         : builder.constant(kFloat, {c.outputs, blocks}, scales);
  const uint32_t bias = c.hasBias
                            ? builder.constant(kFloat, {c.outputs}, randomFloats(c.outputs, 5))
                            : builder.omitted(kFloat);
  builder.operation(OperationType::kFullyConnected,
                    {input, filter, bias, builder.scalar(c.activation), scale},
                    {builder.output(kFloat, {c.rows, c.outputs})});
  EXPECT_EQ(differenceFromReference(builder.model(), {floatsFor({c.rows, c.inputs}, 1, 3.0f)},
                                    "own", 5e-6f),
            "");
}

struct ChannelCase {
  uint32_t rows, inputs, outputs;
  bool hasOneScale, hasBias;
  int32_t activation = 0;
};

class ChannelInt4Test : public testing::TestWithParam<ChannelCase> {};

TEST_P(ChannelInt4Test, EqualsTheReference) {
  const ChannelCase& c = GetParam();
  ModelBuilder builder;
  const uint32_t input = builder.input(kFloat, {c.rows, c.inputs});
  const uint32_t filter =
      builder.constant(OperandType::kTensorInt4, {c.outputs, c.inputs},
                       randomBytes(size_t{c.outputs} * c.inputs / 2, 3), c.hasOneScale ? 0.03F : 0);
  const uint32_t bias = c.hasBias
                            ? builder.constant(kFloat, {c.outputs}, randomFloats(c.outputs, 5))
                            : builder.omitted(kFloat);
  builder.operation(OperationType::kFullyConnected,
                    {input, filter, bias, builder.scalar(c.activation)},
                    {builder.output(kFloat, {c.rows, c.outputs})});
  graph::Model model = builder.model();
  if (!c.hasOneScale)
    model.main().operands[filter].perChannel.scales = risingScales(c.outputs, 0.001F);
  EXPECT_EQ(
      differenceFromReference(model, {floatsFor({c.rows, c.inputs}, 1, 3.0F)}, nullptr, 2e-6F), "");
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ChannelInt4Test,
    testing::Values(ChannelCase{1, 8, 1, true, false}, ChannelCase{1, 40, 16, false, true},
                    ChannelCase{1, 2048, 70, false, false}, ChannelCase{3, 96, 17, true, true, 1},
                    ChannelCase{4, 576, 33, false, true, 3},
                    ChannelCase{130, 1536, 35, false, true}, ChannelCase{2, 65536, 3, false, false},
                    ChannelCase{2, 65544, 3, false, true}));

// Rows that are quantised to -128 everywhere, and the largest weights: sums of 16 bits hold no
// more.
TEST(BlockFullyConnectedExtremesTest, EqualTheReference) {
  for (const uint32_t block : {32U, 64U, 96U}) {
    for (const int pairs : {0x77, 0x88}) {
      for (const uint32_t rows : {1U, 4U}) {
        ModelBuilder builder;
        constexpr uint32_t kInputs = 192;
        constexpr uint32_t kOutputs = 17;
        const uint32_t input = builder.input(kFloat, {rows, kInputs});
        const uint32_t filter = builder.constant(
            OperandType::kTensorInt4, {kOutputs, kInputs},
            std::vector<uint8_t>(kOutputs * kInputs / 2, static_cast<uint8_t>(pairs)));
        const uint32_t scale =
            builder.constant(kFloat, {kOutputs, kInputs / block},
                             std::vector<float>(kOutputs * kInputs / block, 0.5F));
        builder.operation(
            OperationType::kFullyConnected,
            {input, filter, builder.omitted(kFloat), builder.scalar(int32_t{0}), scale},
            {builder.output(kFloat, {rows, kOutputs})});
        const std::vector<float> ones(size_t{rows} * kInputs, -1.0F);
        EXPECT_EQ(differenceFromReference(builder.model(), {bytesOf(ones)}, "own", 5e-6F), "")
            << block << " " << pairs << " " << rows;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, BlockFullyConnectedTest,
    testing::Values(BlockCase{1, 32, 1, 32, true, false}, BlockCase{1, 64, 5, 32, true, true},
                    BlockCase{1, 2048, 70, 32, true, false}, BlockCase{3, 96, 17, 32, false, true},
                    BlockCase{4, 160, 33, 32, true, true, 1}, BlockCase{5, 192, 8, 64, true, false},
                    BlockCase{17, 384, 21, 128, false, true},
                    BlockCase{9, 512, 12, 256, true, false, 3},
                    BlockCase{130, 4096, 35, 32, true, true}, BlockCase{2, 48, 7, 16, true, true},
                    BlockCase{3, 96, 5, 96, true, false}, BlockCase{13, 24, 39, 8, true, true},
                    BlockCase{25, 8, 16, 8, false, true}, BlockCase{3, 576, 21, 288, true, true},
                    // Block sizes that take the portable path on every CPU.
                    BlockCase{6, 30, 4, 10, false, false}, BlockCase{1, 40, 9, 20, true, true}));

}  // namespace
}  // namespace hearth::cpu
