// SPDX-License-Identifier: Apache-2.0
// Tensors that are large enough for the vectorised loops of operations whose other tests are small.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/quantization.h"
#include "ops/testing/operation_builder.h"
#include "ops/testing/values.h"

namespace hearth::ops {
namespace {

std::vector<float> reducedRow(OperationType type, Dimensions dimensions, int32_t axis,
                              const std::vector<float>& values) {
  OperationBuilder builder(type);
  builder.input(std::move(dimensions), values).input({1}, std::vector<int32_t>{axis});
  if (type == OperationType::kMean)
    builder.scalar(0);
  else
    builder.scalar(false);
  builder.output();
  EXPECT_TRUE(builder.run());
  return builder.result<float>();
}

// Rows are folded in many lanes, columns side by side. Sums of whole numbers are exact.
TEST(LongRowsTest, Reductions) {
  for (const uint32_t size : {1u, 3u, 15u, 17u, 31u, 63u, 64u, 65u, 257u, 1000u}) {
    const uint32_t rows = 7;
    const std::vector<float> values = randomValues<float>(size_t{rows} * size, -99, 99);
    std::vector<float> turned(values.size());
    for (size_t r = 0; r < rows; ++r)
      for (size_t i = 0; i < size; ++i) turned[i * rows + r] = values[r * size + i];
    for (const OperationType type :
         {OperationType::kReduceSum, OperationType::kReduceMax, OperationType::kReduceMin}) {
      std::vector<float> expected;
      for (size_t r = 0; r < rows; ++r) {
        const float* row = values.data() + r * size;
        expected.push_back(
            type == OperationType::kReduceSum   ? std::accumulate(row, row + size, 0.0f)
            : type == OperationType::kReduceMax ? *std::max_element(row, row + size)
                                                : *std::min_element(row, row + size));
      }
      EXPECT_EQ(reducedRow(type, {rows, size}, 1, values), expected) << size;
      EXPECT_EQ(reducedRow(type, {size, rows}, 0, turned), expected) << size;
    }
  }
}

TEST(LongRowsTest, ReductionsOfBytes) {
  for (const uint32_t columns : {1u, 5u, 64u, 300u}) {
    const uint32_t rows = 500;
    const std::vector<int8_t> values = randomValues<int8_t>(size_t{rows} * columns, -128, 127);
    std::vector<int8_t> highest(columns, -128);
    std::vector<int64_t> sums(columns, 0);
    for (size_t i = 0; i < values.size(); ++i) {
      highest[i % columns] = std::max(highest[i % columns], values[i]);
      sums[i % columns] += values[i] - 3;
    }
    const auto input = OperationBuilder::tensor(kInt8, {rows, columns}, 0.5f, 3);
    OperationBuilder largest(OperationType::kReduceMax);
    largest.input(input, values).input({1}, std::vector<int32_t>{0}).scalar(false);
    largest.output(OperationBuilder::tensor(kInt8, {}, 0.5f, 3));
    ASSERT_TRUE(largest.run());
    EXPECT_EQ(largest.result<int8_t>(), highest);
    OperationBuilder sum(OperationType::kReduceSum);
    const auto output = OperationBuilder::tensor(kInt8, {}, 16.0f, 1);
    sum.input(input, values).input({1}, std::vector<int32_t>{0}).scalar(false).output(output);
    ASSERT_TRUE(sum.run());
    for (size_t i = 0; i < columns; ++i)
      EXPECT_EQ(sum.result<int8_t>()[i], quantize(0.5 * static_cast<double>(sums[i]), output));
  }
}

// Sums of 8-bit products are 32-bit; those that are too large keep their lower bits.
TEST(LongRowsTest, SumsOfProductsKeepTheirLowerBits) {
  constexpr uint32_t kSize = 40000;
  const std::vector<uint8_t> ones(kSize, 255);
  // 40,000 * 255 * 255 - 2^32 is -100.97 * 2^24.
  const auto output = OperationBuilder::tensor(kUint8, {}, 16777216.0f, 128);
  OperationBuilder layer(OperationType::kFullyConnected);
  layer.input(OperationBuilder::tensor(kUint8, {1, kSize}, 1.0f), ones)
      .input(OperationBuilder::tensor(kUint8, {1, kSize}, 1.0f), ones)
      .input(OperationBuilder::tensor(OperandType::kTensorInt32, {1}, 1.0f),
             std::vector<int32_t>{0})
      .scalar(0)
      .output(output);
  ASSERT_TRUE(layer.run());
  EXPECT_EQ(layer.result<uint8_t>(), std::vector<uint8_t>{128 - 101});
}

TEST(LongRowsTest, NaNIsNoExtreme) {
  std::vector<float> values(300, 1.0f);
  values[7] = values[200] = NAN;
  values[100] = 5.0f;
  EXPECT_EQ(reducedRow(OperationType::kReduceMax, {1, 300}, 1, values), std::vector<float>{5.0f});
}

TEST(LongRowsTest, RunningSumsOfColumns) {
  const uint32_t rows = 37;
  const uint32_t columns = 19;
  const std::vector<float> values = randomValues<float>(2 * rows * columns, -99, 99);
  for (const bool isExclusive : {false, true}) {
    for (const bool isReverse : {false, true}) {
      OperationBuilder builder(OperationType::kCumsum);
      builder.input({2, rows, columns}, values).scalar(1).scalar(isExclusive).scalar(isReverse);
      builder.output();
      ASSERT_TRUE(builder.run());
      const std::vector<float> made = builder.result<float>();
      for (size_t block = 0; block < 2; ++block) {
        for (size_t column = 0; column < columns; ++column) {
          float total = 0.0f;
          for (size_t i = 0; i < rows; ++i) {
            const size_t row = isReverse ? rows - 1 - i : i;
            const size_t at = (block * rows + row) * columns + column;
            const float before = total;
            total += values[at];
            ASSERT_EQ(made[at], isExclusive ? before : total) << at;
          }
        }
      }
    }
  }
}

// TOPK_V2 of one row, compared with a sort; NaN is smaller than all numbers.
template <typename T>
void compareLargest(OperandType type, const std::vector<T>& values, int32_t k) {
  const auto size = static_cast<uint32_t>(values.size());
  OperationBuilder builder(OperationType::kTopkV2);
  const float scale = type == kInt8 ? 0.5f : 0.0f;
  builder.input(OperationBuilder::tensor(type, {1, size}, scale), values).scalar(k);
  builder.output(OperationBuilder::tensor(type, {}, scale)).output(OperandType::kTensorInt32);
  ASSERT_TRUE(builder.run());
  std::vector<int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int32_t a, int32_t b) {
    const double left = static_cast<double>(values[static_cast<size_t>(a)]);
    const double right = static_cast<double>(values[static_cast<size_t>(b)]);
    return left > right || (std::isnan(right) && !std::isnan(left));
  });
  order.resize(static_cast<size_t>(k));
  EXPECT_EQ(builder.template result<int32_t>(1), order) << k;
}

TEST(LongRowsTest, LargestOfManyEqualNumbers) {
  std::vector<int32_t> rising(5000);
  std::iota(rising.begin(), rising.end(), -2500);
  std::vector<float> withNaN = randomValues<float>(5000, 0, 50);
  std::fill_n(withNaN.begin(), 300, NAN);
  withNaN[4000] = NAN;
  for (const int32_t k : {1, 2, 10, 4999, 5000}) {
    compareLargest(kFloat, randomValues<float>(5000, 0, 50), k);
    compareLargest(kFloat, withNaN, k);
    compareLargest(OperandType::kTensorInt32, rising, k);
    compareLargest(OperandType::kTensorInt32, std::vector<int32_t>(rising.rbegin(), rising.rend()),
                   k);
    compareLargest(kInt8, randomValues<int8_t>(5000, -128, 127), k);
  }
}

// Rounds as quantize() does. The products are multiples of a quarter, many of them between two
// steps.
TEST(LongRowsTest, RoundingToBytes) {
  std::vector<int8_t> all(256);
  std::iota(all.begin(), all.end(), static_cast<int8_t>(-128));
  const auto output = OperationBuilder::tensor(kInt8, {}, 0.5f, -7);
  OperationBuilder builder(OperationType::kMul);
  builder.input(OperationBuilder::tensor(kInt8, {256, 1}, 0.5f, 5), all);
  builder.input(OperationBuilder::tensor(kInt8, {256}, 0.5f, 0), all).scalar(0).output(output);
  ASSERT_TRUE(builder.run());
  const std::vector<int8_t> made = builder.result<int8_t>();
  for (size_t i = 0; i < made.size(); ++i)
    ASSERT_EQ(made[i], quantize(0.25 * (all[i / 256] - 5) * all[i % 256], output)) << i;
}

TEST(LongRowsTest, ChoicesWithOneElement) {
  constexpr uint32_t kCount = 300;
  const std::vector<uint8_t> which = randomValues<uint8_t>(kCount, 0, 1);
  const std::vector<float> many = randomValues<float>(kCount, -99, 99);
  const std::vector<float> one = {1000.0f};
  for (const bool isYesOne : {false, true}) {
    for (const bool isNoOne : {false, true}) {
      OperationBuilder builder(OperationType::kSelectV2);
      builder.input(OperationBuilder::tensor(OperandType::kTensorBool8, {kCount}), which);
      builder.input({isYesOne ? 1 : kCount}, isYesOne ? one : many);
      builder.input({isNoOne ? 1 : kCount}, isNoOne ? one : many);
      builder.output();
      ASSERT_TRUE(builder.run());
      const std::vector<float> made = builder.result<float>();
      for (size_t i = 0; i < kCount; ++i) {
        const bool isOne = which[i] != 0 ? isYesOne : isNoOne;
        ASSERT_EQ(made[i], isOne ? one[0] : many[i]) << i;
      }
    }
  }
}

// Values beyond the range of the type, and NaN.
TEST(LongRowsTest, FloatsToIntegers) {
  const std::vector<float> values = {
      NAN,  INFINITY,    -INFINITY,  0x1p31f,        0x1.fffffep30f, -0x1p31f, -1e20f, 1e20f, -0.9f,
      0.9f, -123456.75f, 123456.75f, 0x1.fffffep22f, -0.0f,          7.0f,     -7.0f,  1e-40f};
  const std::vector<int32_t> expected = {
      0, INT32_MAX, INT32_MIN, INT32_MAX, 2147483520, INT32_MIN, INT32_MIN, INT32_MAX, 0,
      0, -123456,   123456,    8388607,   0,          7,         -7,        0};
  OperationBuilder builder(OperationType::kCast);
  builder.input({static_cast<uint32_t>(values.size())}, values).output(OperandType::kTensorInt32);
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.result<int32_t>(), expected);
}

// The channels fill vectors, with and without a remainder.
TEST(LongRowsTest, ThreeDimensionalConvolution) {
  for (const uint32_t outputs : {3u, 16u, 37u}) {
    const uint32_t inputs = 5;
    const std::vector<float> image = randomValues<float>(4 * inputs, -9, 9);
    const std::vector<float> filter = randomValues<float>(2 * inputs * outputs, -9, 9);
    OperationBuilder builder(OperationType::kConv3d);
    builder.input({1, 1, 1, 4, inputs}, image).input({1, 1, 2, inputs, outputs}, filter);
    builder.input({outputs}, std::vector<float>(outputs, 1.0f));
    builder.scalars({2, 1, 1, 1, 1, 1, 1, 0}).output();
    const Status status = builder.run();
    ASSERT_TRUE(status) << status.error().toString();
    const std::vector<float> made = builder.result<float>();
    ASSERT_EQ(made.size(), 3 * outputs);
    for (size_t x = 0; x < 3; ++x)
      for (size_t o = 0; o < outputs; ++o) {
        float sum = 1.0f;
        for (size_t tap = 0; tap < 2; ++tap)
          for (size_t c = 0; c < inputs; ++c)
            sum += image[(x + tap) * inputs + c] * filter[(tap * inputs + c) * outputs + o];
        EXPECT_EQ(made[x * outputs + o], sum);
      }
  }
}

// Rows of various numbers of bytes, from several slabs.
TEST(LongRowsTest, GatheredRows) {
  constexpr uint32_t kRows = 23;
  const std::vector<int32_t> indices = randomValues<int32_t>(40, 0, kRows - 1);
  for (const uint32_t size : {1u, 2u, 3u, 4u, 8u, 17u, 64u, 100u, 1025u}) {
    const std::vector<int8_t> values = randomValues<int8_t>(size_t{3} * kRows * size, -128, 127);
    OperationBuilder builder(OperationType::kGather);
    builder.input(OperationBuilder::tensor(kInt8, {3, kRows, size}, 1.0f, 0), values);
    builder.scalar(1).input({40}, indices).output(OperationBuilder::tensor(kInt8, {}, 1.0f, 0));
    ASSERT_TRUE(builder.run());
    const std::vector<int8_t> made = builder.result<int8_t>();
    for (size_t i = 0; i < made.size(); ++i) {
      const size_t slab = i / size / 40;
      const auto row = static_cast<size_t>(indices[i / size % 40]);
      ASSERT_EQ(made[i], values[(slab * kRows + row) * size + i % size]) << size;
    }
  }
}

TEST(LongRowsTest, NormalizedBytes) {
  for (const uint32_t size : {1u, 31u, 64u, 40000u}) {
    const std::vector<int8_t> values = randomValues<int8_t>(2 * size_t{size}, -128, 127);
    OperationBuilder builder(OperationType::kL2Normalization);
    builder.input(OperationBuilder::tensor(kInt8, {2, size}, 0.5f, -7), values);
    builder.output(OperationBuilder::tensor(kInt8, {}, 1.0f / 128, 0));
    ASSERT_TRUE(builder.run());
    const std::vector<int8_t> made = builder.result<int8_t>();
    for (size_t row = 0; row < 2; ++row) {
      double squares = 0.0;
      for (size_t i = 0; i < size; ++i) squares += std::pow(values[row * size + i] + 7, 2);
      for (size_t i = 0; i < size; ++i) {
        const double expected = 128 * (values[row * size + i] + 7) / std::sqrt(squares);
        ASSERT_NEAR(made[row * size + i], std::min(expected, 127.0), 0.501) << size;
      }
    }
  }
}

TEST(LongRowsTest, SequencesInReverse) {
  constexpr uint32_t kSteps = 9;
  constexpr uint32_t kBatches = 4;
  const std::vector<int32_t> lengths = {0, 1, 5, 9};
  for (const uint32_t size : {1u, 5u, 70u}) {
    for (const bool isBatchFirst : {false, true}) {
      const std::vector<float> values = randomValues<float>(kSteps * kBatches * 2 * size, -99, 99);
      OperationBuilder builder(OperationType::kReverseSequence);
      // Another dimension lies between the two.
      builder.input({isBatchFirst ? kBatches : kSteps, 2, isBatchFirst ? kSteps : kBatches, size},
                    values);
      builder.input({kBatches}, lengths)
          .scalar(isBatchFirst ? 2 : 0)
          .scalar(isBatchFirst ? 0 : 2)
          .output();
      ASSERT_TRUE(builder.run());
      const auto at = [&](size_t step, size_t batch, size_t k, size_t i) {
        return isBatchFirst ? ((batch * 2 + k) * kSteps + step) * size + i
                            : ((step * 2 + k) * kBatches + batch) * size + i;
      };
      for (size_t step = 0; step < kSteps; ++step)
        for (size_t batch = 0; batch < kBatches; ++batch)
          for (size_t k = 0; k < 2; ++k)
            for (size_t i = 0; i < size; ++i) {
              const auto length = static_cast<size_t>(lengths[batch]);
              const size_t from = step < length ? length - 1 - step : step;
              ASSERT_EQ(builder.result<float>()[at(step, batch, k, i)],
                        values[at(from, batch, k, i)]);
            }
    }
  }
}

// The kernel computes six positions at a time; the filter extends into the padding.
TEST(LongRowsTest, PaddedThreeDimensionalConvolution) {
  for (const uint32_t width : {1u, 5u, 6u, 13u}) {
    const uint32_t outputs = 18;
    const std::vector<float> image = randomValues<float>(size_t{2} * 3 * width * 2, -9, 9);
    const std::vector<float> filter = randomValues<float>(size_t{27} * 2 * outputs, -9, 9);
    OperationBuilder builder(OperationType::kConv3d);
    builder.input({1, 2, 3, width, 2}, image).input({3, 3, 3, 2, outputs}, filter);
    builder.input({outputs}, std::vector<float>(outputs, 0.5f));
    builder.scalars({1, 1, 1, 1, 1, 1, 1, 0}).output();
    ASSERT_TRUE(builder.run());
    const std::vector<float> made = builder.result<float>();
    ASSERT_EQ(made.size(), size_t{2} * 3 * width * outputs);
    for (size_t i = 0; i < made.size(); ++i) {
      const auto x = static_cast<int64_t>(i / outputs % width);
      const auto y = static_cast<int64_t>(i / outputs / width % 3);
      const auto z = static_cast<int64_t>(i / outputs / width / 3);
      float sum = 0.5f;
      for (int64_t tap = 0; tap < 27; ++tap) {
        const int64_t atZ = z + tap / 9 - 1;
        const int64_t atY = y + tap / 3 % 3 - 1;
        const int64_t atX = x + tap % 3 - 1;
        if (atZ < 0 || atZ > 1 || atY < 0 || atY > 2 || atX < 0 || atX >= width) continue;
        const auto pixel = static_cast<size_t>((atZ * 3 + atY) * width + atX);
        for (size_t c = 0; c < 2; ++c)
          sum += image[pixel * 2 + c] *
                 filter[(static_cast<size_t>(tap) * 2 + c) * outputs + i % outputs];
      }
      ASSERT_EQ(made[i], sum) << i;
    }
  }
}

TEST(LongRowsTest, BatchesOfBlocks) {
  constexpr uint32_t kHeight = 5;
  constexpr uint32_t kWidth = 7;
  for (const uint32_t channels : {1u, 20u}) {
    const std::vector<float> values = randomValues<float>(2 * kHeight * kWidth * channels, 1, 99);
    OperationBuilder builder(OperationType::kSpaceToBatchNd);
    builder.input({2, kHeight, kWidth, channels}, values)
        .input({2}, std::vector<int32_t>{2, 3})
        .input({2, 2}, std::vector<int32_t>{1, 0, 2, 3})
        .output();
    ASSERT_TRUE(builder.run());
    ASSERT_EQ(builder.dimensions(), (Dimensions{12, 3, 4, channels}));
    const std::vector<float> made = builder.result<float>();
    for (size_t i = 0; i < made.size(); ++i) {
      const auto image = static_cast<int64_t>(i / channels / 12);
      const int64_t y = static_cast<int64_t>(i / channels / 4 % 3) * 2 + image / 2 / 3 - 1;
      const int64_t x = static_cast<int64_t>(i / channels % 4) * 3 + image / 2 % 3 - 2;
      const bool isInside = y >= 0 && y < kHeight && x >= 0 && x < kWidth;
      const auto from = static_cast<size_t>((image % 2 * kHeight + y) * kWidth + x);
      ASSERT_EQ(made[i], isInside ? values[from * channels + i % channels] : 0.0f) << i;
    }
  }
}

TEST(LongRowsTest, SvdfHistories) {
  for (const uint32_t memory : {1u, 2u, 16u, 35u}) {
    constexpr uint32_t kBatches = 2, kInputs = 21, kUnits = 3, kRank = 2;
    constexpr uint32_t kFilters = kUnits * kRank;
    const std::vector<float> input = randomValues<float>(kBatches * kInputs, -9, 9);
    const std::vector<float> features = randomValues<float>(kFilters * kInputs, -9, 9);
    const std::vector<float> times = randomValues<float>(kFilters * memory, -9, 9);
    const std::vector<float> state = randomValues<float>(kBatches * kFilters * memory, -9, 9);
    OperationBuilder builder(OperationType::kSvdf);
    builder.input({kBatches, kInputs}, input)
        .input({kFilters, kInputs}, features)
        .input({kFilters, memory}, times)
        .omitted(kFloat)
        .input({kBatches, kFilters * memory}, state);
    builder.scalar(static_cast<int32_t>(kRank)).scalar(0).output().output();
    ASSERT_TRUE(builder.run());
    std::vector<float> moved = state;
    std::vector<float> units(kBatches * kUnits, 0.0f);
    for (size_t i = 0; i < kBatches * kFilters; ++i) {
      float* history = moved.data() + i * memory;
      const size_t filter = i % kFilters;
      history[memory - 1] =
          std::inner_product(features.begin() + static_cast<ptrdiff_t>(filter * kInputs),
                             features.begin() + static_cast<ptrdiff_t>((filter + 1) * kInputs),
                             input.begin() + static_cast<ptrdiff_t>(i / kFilters * kInputs), 0.0f);
      units[i / kRank] += std::inner_product(
          history, history + memory, times.begin() + static_cast<ptrdiff_t>(filter * memory), 0.0f);
      std::rotate(history, history + 1, history + memory);
      history[memory - 1] = 0.0f;
    }
    EXPECT_EQ(builder.result<float>(0), moved) << memory;
    EXPECT_EQ(builder.result<float>(1), units) << memory;
  }
}

// OperationBuilder compares with the reference kernel.
TEST(LongRowsTest, SvdfHistoriesInIntegers) {
  using Builder = OperationBuilder;
  for (const uint32_t memory : {1u, 2u, 16u, 35u}) {
    constexpr uint32_t kBatches = 2, kInputs = 67, kUnits = 3, kRank = 2;
    constexpr uint32_t kFilters = kUnits * kRank;
    const std::vector<int16_t> state =
        randomValues<int16_t>(kBatches * kFilters * memory, -32768, 32767);
    OperationBuilder builder(OperationType::kSvdf);
    builder.input(Builder::tensor(kInt8, {kBatches, kInputs}, 0.02f, -7),
                  randomValues<int8_t>(kBatches * kInputs, -128, 127));
    builder.input(Builder::tensor(kInt8, {kFilters, kInputs}, 0.01f),
                  randomValues<int8_t>(kFilters * kInputs, -127, 127));
    builder.input(Builder::tensor(kInt16, {kFilters, memory}, 3e-5f),
                  randomValues<int16_t>(kFilters * memory, -99, 99));
    builder.input(Builder::tensor(OperandType::kTensorInt32, {kUnits}, 3e-8f),
                  randomValues<int32_t>(kUnits, -99999, 99999));
    builder.input(Builder::tensor(kInt16, {kBatches, kFilters * memory}, 1e-3f), state);
    builder.scalar(static_cast<int32_t>(kRank)).scalar(1);
    builder.output(Builder::tensor(kInt16, {}, 1e-3f)).output(Builder::tensor(kInt8, {}, 0.01f, 9));
    ASSERT_TRUE(builder.run()) << memory;
    if (memory > 1) {
      EXPECT_EQ(builder.result<int16_t>(0)[memory - 1], 0);
    }
    if (memory > 2) {
      EXPECT_EQ(builder.result<int16_t>(0)[0], state[1]);
    }
  }
}

}  // namespace
}  // namespace hearth::ops
