// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "drivers/cpu/cpu_device.h"
#include "drivers/cpu/microkernels/x86/f32_gemm.h"
#include "drivers/cpu/platform/host_facts.h"
#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

struct TransposeConvolutionCase {
  Dimensions input;
  uint32_t outputs, kernel, stride;
  OperandType type;
  bool isSame;
  int32_t activation = 0;
  uint32_t cut = 0;  // how many outputs fewer in each direction, with SAME padding
  int32_t int8FilterZero = 0;
};

class TransposeConvolutionTest : public testing::TestWithParam<TransposeConvolutionCase> {};

TEST_P(TransposeConvolutionTest, EqualsTheReference) {
  const TransposeConvolutionCase& c = GetParam();
  const bool isFloat = c.type == kFloat;
  const int32_t zero = isFloat ? 0 : c.type == kInt8 ? -9 : 120;
  ModelBuilder builder;
  const uint32_t input = builder.input(c.type, c.input, isFloat ? 0.0f : 0.03f, zero);
  const Dimensions shape = {c.outputs, c.kernel, c.kernel, c.input[3]};
  const size_t weightCount = countOf(shape);
  const uint32_t filter = isFloat
                              ? builder.constant(kFloat, shape, randomFloats(weightCount, 2))
                              : builder.constant(c.type, shape, randomBytes(weightCount, 2), 0.02f,
                                                 c.type == kInt8 ? c.int8FilterZero : 125);
  const std::vector<int32_t> numbers(c.outputs, 300);
  const uint32_t bias =
      isFloat ? builder.constant(kFloat, {c.outputs}, randomFloats(c.outputs, 3))
              : builder.constant(OperandType::kTensorInt32, {c.outputs}, numbers, 0.03f * 0.02f);
  const auto sizeOf = [&](uint32_t size) {
    return c.isSame ? size * c.stride - c.cut : (size - 1) * c.stride + c.kernel;
  };
  const Dimensions output = {c.input[0], sizeOf(c.input[1]), sizeOf(c.input[2]), c.outputs};
  const uint32_t outputShape = builder.constant(OperandType::kTensorInt32, {4},
                                                std::vector<int32_t>(output.begin(), output.end()));
  const auto stride = static_cast<int32_t>(c.stride);
  builder.operation(
      OperationType::kTransposeConv2d,
      {input, filter, bias, outputShape, builder.scalar(c.isSame ? 1 : 2), builder.scalar(stride),
       builder.scalar(stride), builder.scalar(c.activation), builder.scalar(false)},
      {builder.output(c.type, output, isFloat ? 0.0f : 0.5f, isFloat ? 0 : zero)});
  const size_t count = countOf(c.input);
  // On some CPUs int8 goes to the reference kernel.
  const auto support = createCpuDevice()->explainOperations(builder.model());
  ASSERT_TRUE(support) << support.error().toString();
  const bool isNarrow = output[1] < c.stride;
  // Many channels are multiplied by a product of ours.
  const bool isOwn = isFloat && c.input[3] >= 16 && cpuHasF32Gemm();
  const std::string kernel = c.type == kInt8 ? support->back().kernel
                             : isNarrow      ? "reference"
                             : isOwn         ? "own"
                                             : "xnnpack";
  EXPECT_EQ(differenceFromReference(builder.model(),
                                    {isFloat ? floatsFor(c.input, 1) : randomBytes(count, 1)},
                                    kernel.c_str(), 2e-6f),
            "");
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, TransposeConvolutionTest,
    testing::Values(
        TransposeConvolutionCase{{1, 4, 5, 3}, 6, 3, 2, kFloat, true},
        TransposeConvolutionCase{{2, 3, 3, 17}, 9, 2, 2, kFloat, false, 1},
        TransposeConvolutionCase{{1, 7, 7, 70}, 5, 4, 3, kFloat, true},
        TransposeConvolutionCase{{1, 5, 5, 8}, 11, 3, 1, kFloat, false, 3},
        TransposeConvolutionCase{{1, 4, 5, 3}, 6, 3, 2, OperandType::kTensorQuant8Asymm, true},
        TransposeConvolutionCase{{2, 6, 3, 20}, 9, 2, 2, OperandType::kTensorQuant8Asymm, false, 1},
        TransposeConvolutionCase{{1, 4, 5, 3}, 6, 3, 2, kInt8, true},
        TransposeConvolutionCase{{1, 7, 7, 80}, 10, 3, 1, kInt8, false},
        TransposeConvolutionCase{{1, 7, 7, 80}, 10, 3, 1, kInt8, false, 0, 0, 1},
        TransposeConvolutionCase{{1, 1, 1, 4}, 5, 4, 4, kFloat, true, 0, 3},
        TransposeConvolutionCase{
            {2, 1, 1, 4}, 5, 4, 4, OperandType::kTensorQuant8Asymm, true, 0, 2},
        TransposeConvolutionCase{{2, 1, 1, 4}, 5, 4, 4, kInt8, true, 0, 3}));

// Activations of float32 with weights of 8 bits. On a CPU where XNNPACK computes a last tile of one
// row wrongly, layers that have one are left to the reference kernel: 18 columns are twice 9, a
// tile of seven and two, 16 are twice 8, a tile of seven and one.
TEST(HybridTransposeConvolutionTest, EqualsTheReference) {
  const auto tested = selfTest();
  ASSERT_TRUE(tested) << tested.error().toString();
  const bool isWrong = tested->traits.guardInt8OneRowTail || tested->traits.avoidInt8OneRowTail;
  for (const OperandType type : {kInt8, OperandType::kTensorQuant8SymmPerChannel})
    for (const uint32_t width : {5, 8, 9})
      for (const uint32_t channels : {20, 128}) {
        ModelBuilder builder;
        const Dimensions shape = {6, 3, 3, channels};
        const Dimensions inputShape = {2, 4, width, channels};
        const bool isPerChannel = type == OperandType::kTensorQuant8SymmPerChannel;
        const uint32_t input = builder.input(kFloat, inputShape);
        const uint32_t filter = builder.constant(type, shape, randomBytes(countOf(shape), 2),
                                                 isPerChannel ? 0.0f : 0.02f);
        const uint32_t bias = builder.constant(kFloat, {6}, randomFloats(6, 3));
        const Dimensions output = {2, 8, 2 * width, 6};
        const uint32_t outputShape = builder.constant(
            OperandType::kTensorInt32, {4}, std::vector<int32_t>(output.begin(), output.end()));
        builder.operation(OperationType::kTransposeConv2d,
                          {input, filter, bias, outputShape, builder.scalar(1), builder.scalar(2),
                           builder.scalar(2), builder.scalar(1), builder.scalar(false)},
                          {builder.output(kFloat, output)});
        graph::Model model = builder.model();
        if (isPerChannel) {
          model.main().operands[filter].perChannel.scales = risingScales(6, 0.001f);
          model.main().operands[filter].perChannel.channelDim = 0;
        }
        EXPECT_EQ(differenceFromReference(model, {floatsFor(inputShape, 1, 2.0f)},
                                          isWrong && width == 8 ? "reference" : "xnnpack", 1e-5f),
                  "")
            << width << " columns, " << channels << " channels";
      }
}

}  // namespace
}  // namespace hearth::cpu
