// SPDX-License-Identifier: Apache-2.0
// Kernels of ours, and of XNNPACK for language and diffusion models, give what the reference
// kernels give.
#include <gtest/gtest.h>

#include "drivers/cpu/cpu_device.h"
#include "drivers/cpu/microkernels/qd8_f32_qc8w_gemm.h"
#include "drivers/cpu/testing/compared_models.h"
#include "drivers/cpu/weights/packed_panels.h"

namespace hearth::cpu {
namespace {

// A whole tensor, a row for each row of the other tensor, on either side, and shapes that are not
// rows.
TEST(FloatAddTest, EqualsTheReference) {
  const Dimensions whole = {3, 5, 67};
  for (const Dimensions& other : std::vector<Dimensions>{
           {3, 5, 67}, {67}, {1, 1, 67}, {5, 67}, {1, 5, 67}, {3, 1, 67}, {5, 1}, {1}}) {
    for (const bool isSwapped : {false, true}) {
      for (const int32_t activation : {0, 1}) {
        ModelBuilder builder;
        const Dimensions& first = isSwapped ? other : whole;
        const Dimensions& second = isSwapped ? whole : other;
        const uint32_t a = builder.input(kFloat, first);
        const uint32_t b = builder.input(kFloat, second);
        builder.operation(OperationType::kAdd, {a, b, builder.scalar(activation)},
                          {builder.output(kFloat, whole)});
        const auto compared =
            runBoth(builder.model(), {floatsFor(first, 1, 5.0f), floatsFor(second, 2, 5.0f)});
        ASSERT_TRUE(compared) << compared.error().toString();
        EXPECT_EQ(compared->made, compared->expected);
      }
    }
  }
}

// A difference that only a square reads has no node of its own; any other has one.
TEST(SquaredDifferenceTest, EqualsTheReference) {
  const Dimensions whole = {3, 5, 67};
  enum class Reader { kSquare, kSquareAndOther, kProduct };
  for (const Dimensions& other : std::vector<Dimensions>{{3, 5, 67}, {67}, {3, 1, 67}, {1}}) {
    for (const Reader reader : {Reader::kSquare, Reader::kSquareAndOther, Reader::kProduct}) {
      for (const int32_t inner : {0, 1}) {
        for (const int32_t outer : {0, 3}) {
          ModelBuilder builder;
          const uint32_t a = builder.input(kFloat, whole);
          const uint32_t b = builder.input(kFloat, other);
          const uint32_t difference = builder.temporary(kFloat, whole);
          const uint32_t between = builder.temporary(kFloat, whole);
          builder.operation(OperationType::kSub, {a, b, builder.scalar(inner)}, {difference});
          builder.operation(OperationType::kAbs,
                            {reader == Reader::kSquareAndOther ? difference : a}, {between});
          const uint32_t square = builder.temporary(kFloat, whole);
          builder.operation(OperationType::kMul,
                            {difference, reader == Reader::kProduct ? between : difference,
                             builder.scalar(outer)},
                            {square});
          builder.operation(OperationType::kAdd, {square, between, builder.scalar(0)},
                            {builder.output(kFloat, whole)});
          const auto support = createCpuDevice()->explainOperations(builder.model());
          ASSERT_TRUE(support) << support.error().toString();
          EXPECT_EQ((*support)[2].kernel == "none", reader == Reader::kSquare && inner == 0);
          const auto compared =
              runBoth(builder.model(), {floatsFor(whole, 1, 5.0f), floatsFor(other, 2, 5.0f)});
          ASSERT_TRUE(compared) << compared.error().toString();
          EXPECT_EQ(compared->made, compared->expected);
        }
      }
    }
  }
}

// The square is the output of the model.
TEST(SquaredDifferenceTest, OfTheWholeModel) {
  ModelBuilder builder;
  const Dimensions shape = {2, 33};
  const uint32_t a = builder.input(kFloat, shape);
  const uint32_t b = builder.input(kFloat, shape);
  const uint32_t difference = builder.temporary(kFloat, shape);
  builder.operation(OperationType::kSub, {a, b, builder.scalar(0)}, {difference});
  builder.operation(OperationType::kMul, {difference, difference, builder.scalar(0)},
                    {builder.output(kFloat, shape)});
  EXPECT_EQ(
      differenceFromReference(builder.model(),
                              {floatsFor(shape, 1, 5.0f), floatsFor(shape, 2, 5.0f)}, "none", 0.0f),
      "");
}

TEST(LogSoftmaxTest, EqualsTheReference) {
  for (const uint32_t size : {1u, 15u, 16u, 100u, 1001u}) {
    for (const float beta : {1.0f, 0.3f}) {
      ModelBuilder builder;
      const uint32_t data = builder.input(kFloat, {9, size});
      builder.operation(OperationType::kLogSoftmax,
                        {data, builder.scalar(beta), builder.scalar(int32_t{-1})},
                        {builder.output(kFloat, {9, size})});
      EXPECT_EQ(
          differenceFromReference(builder.model(), {floatsFor({9, size}, 1, 20.0f)}, "own", 1e-6f),
          "")
          << size;
    }
  }
}

TEST(LogSoftmaxTest, BytesEqualTheReference) {
  for (const OperandType type : {kInt8, OperandType::kTensorQuant8Asymm}) {
    const int32_t highest = type == kInt8 ? 127 : 255;
    for (const uint32_t size : {1u, 5u, 64u, 1003u}) {
      for (const float scale : {0.01f, 0.1f, 1.0f}) {
        ModelBuilder builder;
        const uint32_t data = builder.input(type, {9, size}, scale, 4);
        builder.operation(OperationType::kLogSoftmax,
                          {data, builder.scalar(1.0f), builder.scalar(int32_t{-1})},
                          {builder.output(type, {9, size}, 1.0f / 16, highest)});
        EXPECT_EQ(differenceFromReference(builder.model(), {randomBytes(9 * size, 3)}, "own", 0.0f),
                  "")
            << size;
      }
    }
  }
}

TEST(RmsNormTest, EqualsTheReference) {
  for (const uint32_t size : {1u, 3u, 31u, 64u, 100u, 2048u}) {
    for (const bool hasScale : {false, true}) {
      ModelBuilder builder;
      const Dimensions dimensions = {3, 7, size};
      const uint32_t data = builder.input(kFloat, dimensions);
      const uint32_t scale = hasScale ? builder.constant(kFloat, {size}, randomFloats(size, 2))
                                      : builder.omitted(kFloat);
      builder.operation(OperationType::kRmsNorm, {data, scale, builder.scalar(1e-6f)},
                        {builder.output(kFloat, dimensions)});
      EXPECT_EQ(
          differenceFromReference(builder.model(), {floatsFor(dimensions, 1, 5.0f)}, "own", 1e-6f),
          "")
          << size;
    }
  }
}

struct GroupNormCase {
  Dimensions dimensions;
  int32_t groups;
  int32_t axis;
  bool hasScale, hasOffset;
};

class GroupNormTest : public testing::TestWithParam<GroupNormCase> {};

TEST_P(GroupNormTest, EqualsTheReference) {
  const GroupNormCase& c = GetParam();
  ModelBuilder builder;
  const uint32_t data = builder.input(kFloat, c.dimensions);
  const size_t rank = c.dimensions.size();
  const uint32_t channels =
      c.dimensions[static_cast<size_t>(c.axis < 0 ? c.axis + static_cast<int32_t>(rank) : c.axis)];
  const auto perChannel = [&](bool isGiven, unsigned seed) {
    return isGiven ? builder.constant(kFloat, {channels}, randomFloats(channels, seed))
                   : builder.omitted(kFloat);
  };
  const uint32_t scale = perChannel(c.hasScale, 2);
  const uint32_t offset = perChannel(c.hasOffset, 3);
  builder.operation(OperationType::kGroupNorm,
                    {data, scale, offset, builder.scalar(1e-5f), builder.scalar(c.groups),
                     builder.scalar(c.axis)},
                    {builder.output(kFloat, c.dimensions)});
  std::vector<float> values = randomFloats(countOf(c.dimensions), 1);
  // A mean far from 0 shows where a kernel loses precision.
  for (float& value : values) value += 300.0f;
  EXPECT_EQ(differenceFromReference(builder.model(), {bytesOf(values)}, "own", 2e-5f), "");
}

INSTANTIATE_TEST_SUITE_P(Shapes, GroupNormTest,
                         testing::Values(GroupNormCase{{1, 8, 8, 20}, 4, -1, true, true},
                                         GroupNormCase{{2, 5, 33}, 3, 2, true, false},
                                         GroupNormCase{{1, 40, 40, 320}, 32, 3, false, true},
                                         GroupNormCase{{2, 12, 5, 7}, 4, 1, true, true},
                                         GroupNormCase{{1, 6, 64, 64}, 1, 1, false, false},
                                         GroupNormCase{{1, 4}, 2, 1, true, true},
                                         GroupNormCase{{3, 9, 6, 2}, 3, 2, true, true}));

struct MatmulCase {
  Dimensions left, right, product;
  bool isRightTransposed;
  const char* kernel = "xnnpack";
};

class BatchMatmulTest : public testing::TestWithParam<MatmulCase> {};

TEST_P(BatchMatmulTest, EqualsTheReference) {
  const MatmulCase& c = GetParam();
  ModelBuilder builder;
  const uint32_t left = builder.input(kFloat, c.left);
  const uint32_t right = builder.input(kFloat, c.right);
  builder.operation(OperationType::kBatchMatmul,
                    {left, right, builder.scalar(false), builder.scalar(c.isRightTransposed)},
                    {builder.output(kFloat, c.product)});
  EXPECT_EQ(differenceFromReference(builder.model(), {floatsFor(c.left, 1), floatsFor(c.right, 2)},
                                    c.kernel, 1e-6f),
            "");
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, BatchMatmulTest,
    testing::Values(MatmulCase{{5, 7}, {7, 3}, {5, 3}, false},
                    MatmulCase{{5, 7}, {3, 7}, {5, 3}, true},
                    MatmulCase{{4, 17, 33}, {4, 33, 21}, {4, 17, 21}, false},
                    MatmulCase{{2, 3, 17, 64}, {2, 3, 40, 64}, {2, 3, 17, 40}, true},
                    MatmulCase{{2, 3, 5, 8}, {1, 1, 8, 6}, {2, 3, 5, 6}, false},
                    MatmulCase{{2, 3, 5, 8}, {8, 6}, {2, 3, 5, 6}, false},
                    MatmulCase{{2, 3, 5, 8}, {2, 1, 6, 8}, {2, 3, 5, 6}, true},
                    MatmulCase{{1, 3, 5, 8}, {2, 1, 6, 8}, {2, 3, 5, 6}, true, "reference"},
                    MatmulCase{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, false}));

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

// With a window of one place that steps by one, without padding, kernels take the pixels as they
// lie. These windows differ from that in one number at most.
struct NearlyOverPixels {
  int32_t kernelHeight = 1, kernelWidth = 1, strideHeight = 1, strideWidth = 1;
  int32_t left = 0, right = 0, top = 0, bottom = 0;
};

class NearlyOverPixelsTest : public testing::TestWithParam<NearlyOverPixels> {
 protected:
  // Compares a convolution of data of this type. `addFilter` adds a filter of the shape that it
  // gets.
  template <typename AddFilter>
  static void compare(OperandType type, AddFilter addFilter) {
    const NearlyOverPixels& w = GetParam();
    constexpr uint32_t kInputs = 24;
    constexpr uint32_t kOutputs = 40;
    const bool isFloat = type == kFloat;
    ModelBuilder builder;
    const Dimensions shape = {2, 6, 7, kInputs};
    const uint32_t input = builder.input(type, shape, isFloat ? 0.0f : 0.03f, isFloat ? 0 : 5);
    const uint32_t filter =
        addFilter(&builder, Dimensions{kOutputs, static_cast<uint32_t>(w.kernelHeight),
                                       static_cast<uint32_t>(w.kernelWidth), kInputs});
    const uint32_t bias = isFloat ? builder.constant(kFloat, {kOutputs}, randomFloats(kOutputs, 3))
                                  : builder.constant(OperandType::kTensorInt32, {kOutputs},
                                                     std::vector<int32_t>(kOutputs, 300), 0.0006f);
    std::vector<uint32_t> inputs = {input, filter, bias};
    for (const int32_t number :
         {w.left, w.right, w.top, w.bottom, w.strideWidth, w.strideHeight, 0})
      inputs.push_back(builder.scalar(number));
    const auto sizeOf = [](int32_t size, int32_t kernel, int32_t stride) {
      return static_cast<uint32_t>((size - kernel) / stride + 1);
    };
    const Dimensions result = {2, sizeOf(6 + w.top + w.bottom, w.kernelHeight, w.strideHeight),
                               sizeOf(7 + w.left + w.right, w.kernelWidth, w.strideWidth),
                               kOutputs};
    builder.operation(OperationType::kConv2d, inputs,
                      {builder.output(type, result, isFloat ? 0.0f : 0.3f, isFloat ? 0 : 5)});
    const Bytes data = isFloat ? floatsFor(shape, 1) : randomBytes(countOf(shape), 1);
    EXPECT_EQ(differenceFromReference(builder.model(), {data}, nullptr, 1e-5f), "");
  }
};

TEST_P(NearlyOverPixelsTest, EqualsTheReference) {
  compare(kFloat, [](ModelBuilder* builder, const Dimensions& shape) {
    return builder->constant(kFloat, shape, randomFloats(countOf(shape), 2));
  });
  compare(kFloat, [](ModelBuilder* builder, const Dimensions& shape) {
    std::vector<_Float16> values;
    for (const float value : randomFloats(countOf(shape), 2))
      values.push_back(static_cast<_Float16>(value));
    const uint32_t half = builder->constant(OperandType::kTensorFloat16, shape, values);
    const uint32_t filter = builder->temporary(kFloat, shape);
    builder->operation(OperationType::kDequantize, {half}, {filter});
    return filter;
  });
  // Hybrid, then int8 and uint8 throughout.
  for (const OperandType type : {kFloat, kInt8, kUint8})
    compare(type, [&](ModelBuilder* builder, const Dimensions& shape) {
      return builder->constant(type == kFloat ? kInt8 : type, shape, randomBytes(countOf(shape), 2),
                               0.02f, type == kUint8 ? 120 : 0);
    });
}

INSTANTIATE_TEST_SUITE_P(Windows, NearlyOverPixelsTest,
                         testing::Values(NearlyOverPixels{}, NearlyOverPixels{2},
                                         NearlyOverPixels{1, 2}, NearlyOverPixels{1, 1, 2},
                                         NearlyOverPixels{1, 1, 1, 2},
                                         NearlyOverPixels{1, 1, 1, 1, 1},
                                         NearlyOverPixels{1, 1, 1, 1, 0, 1},
                                         NearlyOverPixels{1, 1, 1, 1, 0, 0, 1},
                                         NearlyOverPixels{1, 1, 1, 1, 0, 0, 0, 1}));

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
  const std::string kernel = c.type == kInt8 ? support->back().kernel
                             : isNarrow      ? "reference"
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

TEST(QuantizedSoftmaxTest, EqualsTheReference) {
  for (const OperandType type : {kInt8, OperandType::kTensorQuant8Asymm}) {
    for (const uint32_t channels : {1u, 2u, 10u, 512u, 513u, 1000u}) {
      for (const float beta : {1.0f, 0.5f, 20.0f}) {
        ModelBuilder builder;
        const bool isSigned = type == kInt8;
        const char* const kernel = isSigned || channels > 512 ? "own" : "xnnpack";
        const uint32_t data = builder.input(type, {40, channels}, 0.1f, isSigned ? -3 : 110);
        builder.operation(OperationType::kSoftmax, {data, builder.scalar(beta)},
                          {builder.output(type, {40, channels}, 1.0f / 256, isSigned ? -128 : 0)});
        const size_t count = size_t{40} * channels;
        EXPECT_EQ(differenceFromReference(builder.model(), {randomBytes(count, 1)}, kernel, 0.0f),
                  "")
            << channels << " " << beta;
        // All numbers equal: XNNPACK's sum overflows from 513 numbers on.
        EXPECT_EQ(differenceFromReference(builder.model(), {Bytes(count, 77)}, kernel, 0.0f), "")
            << channels << " " << beta;
      }
    }
  }
}

// XNNPACK asserts that an activation leaves an integer more than one possible value.
TEST(ActivationTest, OfOneValue) {
  constexpr float kScale = 5.0f;  // RELU1 leaves the zero point
  for (const OperandType type : {kInt8, OperandType::kTensorQuant8Asymm}) {
    const int32_t zero = type == kInt8 ? -3 : 110;
    const Dimensions shape = {1, 6, 6, 8};
    const auto compare = [&](const auto& add) {
      ModelBuilder builder;
      const uint32_t data = builder.input(type, shape, kScale, zero);
      add(&builder, data);
      EXPECT_EQ(differenceFromReference(builder.model(), {randomBytes(288, 1)}, nullptr, 0.0f), "");
    };
    compare([&](ModelBuilder* builder, uint32_t data) {
      builder->operation(OperationType::kRelu1, {data},
                         {builder->output(type, shape, kScale, zero)});
    });
    compare([&](ModelBuilder* builder, uint32_t data) {
      builder->operation(OperationType::kAdd, {data, data, builder->scalar(2)},
                         {builder->output(type, shape, kScale, zero)});
    });
    for (const OperationType pool : {OperationType::kMaxPool2d, OperationType::kAveragePool2d})
      compare([&](ModelBuilder* builder, uint32_t data) {
        std::vector<uint32_t> inputs = {data};
        for (const int32_t number : {2, 1, 1, 3, 3, 2}) inputs.push_back(builder->scalar(number));
        builder->operation(pool, inputs, {builder->output(type, {1, 4, 4, 8}, kScale, zero)});
      });
    compare([&](ModelBuilder* builder, uint32_t data) {
      const uint32_t filter =
          builder->constant(type, {4, 8}, std::vector<uint8_t>(32, 3), 0.1f, type == kInt8 ? 0 : 7);
      const uint32_t bias = builder->constant(OperandType::kTensorInt32, {4},
                                              std::vector<int32_t>(4, 9), kScale * 0.1f);
      builder->operation(OperationType::kFullyConnected, {data, filter, bias, builder->scalar(2)},
                         {builder->output(type, {36, 4}, kScale, zero)});
    });
    compare([&](ModelBuilder* builder, uint32_t data) {
      const uint32_t filter = builder->constant(type, {4, 1, 1, 8}, std::vector<uint8_t>(32, 3),
                                                0.1f, type == kInt8 ? 0 : 7);
      const uint32_t bias = builder->constant(OperandType::kTensorInt32, {4},
                                              std::vector<int32_t>(4, 9), kScale * 0.1f);
      std::vector<uint32_t> inputs = {data, filter, bias};
      for (const int32_t number : {2, 1, 1, 2}) inputs.push_back(builder->scalar(number));
      builder->operation(OperationType::kConv2d, inputs,
                         {builder->output(type, {1, 6, 6, 4}, kScale, zero)});
    });
  }
}

struct PoolCase {
  Dimensions input;
  int32_t padding, stride, filter, activation;
};

class QuantizedAveragePoolTest : public testing::TestWithParam<PoolCase> {};

TEST_P(QuantizedAveragePoolTest, EqualsTheReference) {
  const PoolCase& c = GetParam();
  for (const OperandType type : {kInt8, OperandType::kTensorQuant8Asymm}) {
    ModelBuilder builder;
    const int32_t zero = type == kInt8 ? -20 : 108;
    const uint32_t input = builder.input(type, c.input, 0.05f, zero);
    std::vector<uint32_t> inputs = {input};
    // The padding of each side, then strides, filter and activation.
    for (const int32_t value : {c.padding, c.padding, c.padding, c.padding, c.stride, c.stride,
                                c.filter, c.filter, c.activation})
      inputs.push_back(builder.scalar(value));
    const auto sizeOf = [&](uint32_t size) {
      return static_cast<uint32_t>(
          (static_cast<int32_t>(size) + 2 * c.padding - c.filter) / c.stride + 1);
    };
    builder.operation(
        OperationType::kAveragePool2d, inputs,
        {builder.output(type, {c.input[0], sizeOf(c.input[1]), sizeOf(c.input[2]), c.input[3]},
                        0.05f, zero)});
    EXPECT_EQ(
        differenceFromReference(builder.model(), {randomBytes(countOf(c.input), 1)}, "own", 0.0f),
        "");
    const auto compared = runBoth(builder.model(), {randomBytes(countOf(c.input), 1)});
    ASSERT_TRUE(compared) << compared.error().toString();
    EXPECT_EQ(compared->made, compared->expected);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, QuantizedAveragePoolTest,
    testing::Values(PoolCase{{1, 8, 8, 5}, 0, 2, 2, 0}, PoolCase{{2, 7, 9, 16}, 1, 1, 3, 0},
                    PoolCase{{1, 5, 6, 33}, 2, 2, 3, 1}, PoolCase{{1, 30, 30, 70}, 3, 3, 7, 3},
                    PoolCase{{3, 2, 2, 1}, 1, 1, 2, 2}, PoolCase{{1, 14, 15, 40}, 0, 1, 11, 0},
                    PoolCase{{1, 14, 15, 40}, 1, 1, 12, 0}, PoolCase{{2, 7, 7, 40}, 0, 1, 7, 0},
                    PoolCase{{1, 20, 20, 33}, 0, 1, 20, 0}));

// XNNPACK goes through such a window several times, and reads its results in between.
TEST(MaxPoolTest, OfAWindowOfManyPlacesStaysInItsOutput) {
  for (const OperandType type : {kInt8, kUint8, kFloat}) {
    const float scale = type == kFloat ? 0.0f : 0.1f;
    ModelBuilder builder;
    const Dimensions shape = {2, 5, 9, 8};
    const uint32_t input = builder.input(type, shape, scale);
    const uint32_t output = builder.output(type, {2, 1, 1, 8}, scale);
    builder.operation(OperationType::kMaxPool2d,
                      {input, builder.scalar(2), builder.scalar(1), builder.scalar(1),
                       builder.scalar(9), builder.scalar(5), builder.scalar(0)},
                      {output});
    const Bytes values = type == kFloat ? floatsFor(shape, 1) : randomBytes(countOf(shape), 1);
    EXPECT_EQ(differenceFromReference(builder.model(), {values}, "xnnpack", 0.0f), "");
  }
}

// XNNPACK has no pooling over one place.
TEST(MaxPoolTest, OfWindowsOfOnePlaceAndOfOneColumn) {
  for (const int32_t height : {1, 3}) {
    ModelBuilder builder;
    const Dimensions shape = {2, 7, 5, 9};
    const uint32_t input = builder.input(kFloat, shape);
    const uint32_t one = builder.scalar(1);
    builder.operation(
        OperationType::kMaxPool2d,
        {input, builder.scalar(2), one, one, one, builder.scalar(height), builder.scalar(0)},
        {builder.output(kFloat, {2, height == 1 ? 7u : 5u, 5, 9})});
    EXPECT_EQ(differenceFromReference(builder.model(), {floatsFor(shape, 1)},
                                      height == 1 ? "reference" : "xnnpack", 0.0f),
              "");
  }
}

TEST(ResizeBilinearTest, IsOnXnnpack) {
  for (const OperandType type : {kInt8, kUint8, kFloat}) {
    const float scale = type == kFloat ? 0.0f : 0.1f;
    ModelBuilder builder;
    const Dimensions shape = {2, 5, 9, 3};
    builder.operation(OperationType::kResizeBilinear,
                      {builder.input(type, shape, scale), builder.scalar(14), builder.scalar(8)},
                      {builder.output(type, {2, 8, 14, 3}, scale)});
    const Bytes values = type == kFloat ? floatsFor(shape, 1) : randomBytes(countOf(shape), 1);
    EXPECT_EQ(differenceFromReference(builder.model(), {values}, "xnnpack", 1e-6f), "");
  }
}

// From planes to pixels, of few dimensions, and of more than XNNPACK takes.
TEST(TransposeTest, EqualsTheReference) {
  struct Case {
    Dimensions input;
    std::vector<int32_t> order;
    const char* kernel = "own";
  };
  for (const Case& c : std::vector<Case>{{{1, 3, 7, 9}, {0, 2, 3, 1}},
                                         {{2, 3, 16, 16}, {0, 2, 3, 1}},
                                         {{2, 3, 5, 7}, {3, 1, 0, 2}, "xnnpack"},
                                         {{17}, {0}, "xnnpack"},
                                         {{2, 3, 1, 2, 3, 2, 5}, {6, 5, 4, 3, 2, 1, 0}}}) {
    ModelBuilder builder;
    const uint32_t input = builder.input(kUint8, c.input, 0.1f);
    const auto rank = static_cast<uint32_t>(c.input.size());
    const uint32_t order = builder.constant(OperandType::kTensorInt32, {rank}, c.order);
    Dimensions output;
    for (const int32_t dimension : c.order)
      output.push_back(c.input[static_cast<size_t>(dimension)]);
    builder.operation(OperationType::kTranspose, {input, order},
                      {builder.output(kUint8, output, 0.1f)});
    EXPECT_EQ(differenceFromReference(builder.model(), {randomBytes(countOf(c.input), 1)}, c.kernel,
                                      0.0f),
              "")
        << rank;
  }
}

// A filter of int8 whose zero point is not 0 is none of XNNPACK's.
TEST(FilterZeroPointTest, LayersOfInt8EqualTheReference) {
  for (const int32_t zero : {0, 1, -3}) {
    for (const bool isConvolution : {false, true}) {
      ModelBuilder builder;
      const Dimensions shape = isConvolution ? Dimensions{1, 2, 3, 24} : Dimensions{6, 24};
      const Dimensions weights = isConvolution ? Dimensions{16, 1, 1, 24} : Dimensions{16, 24};
      const Dimensions result = isConvolution ? Dimensions{1, 2, 3, 16} : Dimensions{6, 16};
      std::vector<uint32_t> inputs = {
          builder.input(kInt8, shape, 0.03f, 4),
          builder.constant(kInt8, weights, randomBytes(countOf(weights), 2), 0.02f, zero),
          builder.constant(OperandType::kTensorInt32, {16}, std::vector<int32_t>(16, 300),
                           0.03f * 0.02f)};
      if (isConvolution)
        for (const int32_t value : {1, 1, 1}) inputs.push_back(builder.scalar(value));
      inputs.push_back(builder.scalar(0));
      builder.operation(isConvolution ? OperationType::kConv2d : OperationType::kFullyConnected,
                        inputs, {builder.output(kInt8, result, 0.3f, -5)});
      const auto support = createCpuDevice()->explainOperations(builder.model());
      ASSERT_TRUE(support) << support.error().toString();
      EXPECT_EQ(support->back().kernel == "reference", zero != 0) << support->back().kernel;
      EXPECT_EQ(
          differenceFromReference(builder.model(), {randomBytes(countOf(shape), 1)}, nullptr, 0.0f),
          "");
    }
  }
}

TEST(MeanTest, SeveralGroupsOfAxesEqualTheReference) {
  for (const std::vector<int32_t>& axes :
       std::vector<std::vector<int32_t>>{{0, 2}, {1, 2, 4}, {0, 1, 3}, {0, 2, 4}, {4, 1}}) {
    ModelBuilder builder;
    const Dimensions dimensions = {2, 5, 6, 3, 7};
    Dimensions kept = dimensions;
    for (const int32_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
    const uint32_t data = builder.input(kFloat, dimensions);
    const uint32_t given =
        builder.constant(OperandType::kTensorInt32, {static_cast<uint32_t>(axes.size())}, axes);
    builder.operation(OperationType::kMean, {data, given, builder.scalar(1)},
                      {builder.output(kFloat, kept)});
    EXPECT_EQ(
        differenceFromReference(builder.model(), {floatsFor(dimensions, 1)}, "xnnpack", 1e-6f), "");
  }
}

// As the cache of a language model: the output takes the input's memory if no later node reads it.
TEST(DynamicUpdateSliceTest, EqualsTheReferenceInPlaceAndNot) {
  const Dimensions cache = {1, 40, 2, 16};
  const Dimensions update = {1, 3, 2, 16};
  for (const bool dies : {true, false}) {
    ModelBuilder builder;
    const uint32_t given = builder.input(kFloat, cache);
    const uint32_t rows = builder.input(kFloat, update);
    const uint32_t begin = builder.input(OperandType::kTensorInt32, {4});
    const uint32_t data = builder.temporary(kFloat, cache);
    builder.operation(OperationType::kAbs, {given}, {data});
    const uint32_t updated = builder.temporary(kFloat, cache);
    builder.operation(OperationType::kDynamicUpdateSlice, {data, rows, begin}, {updated});
    builder.operation(OperationType::kSub, {updated, dies ? given : data, builder.scalar(0)},
                      {builder.output(kFloat, cache)});
    EXPECT_EQ(differenceFromReference(builder.model(),
                                      {floatsFor(cache, 1), floatsFor(update, 2),
                                       bytesOf(std::vector<int32_t>{0, 38, 0, 0})},
                                      "xnnpack", 1e-6f),
              "");
  }
}

}  // namespace
}  // namespace hearth::cpu
