// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "drivers/cpu/microkernels/x86/avx512/qd8_f32_qc8w_gemm.h"
#include "drivers/cpu/testing/compared_models.h"
#include "drivers/cpu/weights/xnnpack_panels.h"

namespace hearth::cpu {
namespace {

struct HybridConvolutionCase {
  Dimensions input;
  uint32_t outputs, kernel, stride;
  uint32_t groups = 1;
  OperandType type = OperandType::kTensorQuant8SymmPerChannel;
  int32_t padding = 1;  // SAME
  bool hasBias = true;
};

class HybridConvolutionTest : public testing::TestWithParam<HybridConvolutionCase> {};

TEST_P(HybridConvolutionTest, EqualsTheReference) {
  const HybridConvolutionCase& c = GetParam();
  ModelBuilder builder;
  const uint32_t input = builder.input(kFloat, c.input);
  const uint32_t channels = c.input[3] / c.groups;
  const Dimensions shape = {c.outputs, c.kernel, c.kernel, channels};
  const bool isInt4 = c.type == OperandType::kTensorInt4;
  const bool isPerChannel = c.type == OperandType::kTensorQuant8SymmPerChannel;
  const uint32_t filter = builder.constant(
      c.type, shape, randomBytes(isInt4 ? (countOf(shape) + 1) / 2 : countOf(shape), 2),
      isPerChannel ? 0.0f : 0.02f);
  const uint32_t bias = c.hasBias
                            ? builder.constant(kFloat, {c.outputs}, randomFloats(c.outputs, 3))
                            : builder.omitted(kFloat);
  const auto sizeOf = [&](uint32_t size) {
    return c.padding == 1 ? (size + c.stride - 1) / c.stride : (size - c.kernel) / c.stride + 1;
  };
  const Dimensions output = {c.input[0], sizeOf(c.input[1]), sizeOf(c.input[2]), c.outputs};
  const auto stride = static_cast<int32_t>(c.stride);
  builder.operation(OperationType::kConv2d,
                    {input, filter, bias, builder.scalar(c.padding), builder.scalar(stride),
                     builder.scalar(stride), builder.scalar(0)},
                    {builder.output(kFloat, output)});
  graph::Model model = builder.model();
  if (isPerChannel)
    model.main().operands[filter].perChannel.scales = risingScales(c.outputs, 0.001f);
  const bool hasOwn =
      hasQd8Gemm() && c.groups == 1 && channels % kQd8Group == 0 && c.outputs >= kQd8Columns;
  EXPECT_EQ(differenceFromReference(model, {floatsFor(c.input, 1, 2.0f)},
                                    hasOwn ? "own" : "xnnpack", 1e-5f),
            "");
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, HybridConvolutionTest,
    testing::Values(HybridConvolutionCase{{1, 8, 8, 5}, 7, 3, 1},
                    HybridConvolutionCase{{2, 9, 7, 16}, 20, 3, 2},
                    HybridConvolutionCase{{1, 7, 7, 96}, 40, 3, 1},
                    HybridConvolutionCase{{1, 13, 13, 72}, 33, 3, 2},
                    HybridConvolutionCase{{3, 7, 7, 80}, 16, 1, 1},
                    HybridConvolutionCase{{1, 17, 1, 128}, 24, 3, 1},
                    HybridConvolutionCase{{1, 10, 10, 8}, 12, 5, 1, 2},
                    HybridConvolutionCase{{1, 6, 6, 4}, 3, 3, 1, 1, kInt8, 2, false},
                    HybridConvolutionCase{
                        {1, 8, 8, 6}, 10, 3, 1, 1, OperandType::kTensorInt4, 1, true}));

}  // namespace
}  // namespace hearth::cpu
