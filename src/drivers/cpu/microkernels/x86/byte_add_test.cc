// SPDX-License-Identifier: Apache-2.0
// Our sums of bytes are the very bytes of XNNPACK's, for all pairs of numbers.
#include "drivers/cpu/microkernels/x86/byte_add.h"

#include <gtest/gtest.h>
#include <hearth_xnnpack.h>

#include <random>
#include <vector>

#include "drivers/cpu/platform/kernel_traits.h"
#include "drivers/cpu/platform/xnn_operator.h"

namespace hearth::cpu {
namespace {

using Bytes = std::vector<uint8_t>;

class ByteAddTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!hasByteAdd()) GTEST_SKIP() << "This CPU lacks the instructions.";
    ASSERT_TRUE(initializeXnnpack());
  }

  int32_t lowest() const { return GetParam() ? -128 : 0; }

  Bytes onXnnpack(const ByteAdd::Quantization& a, const ByteAdd::Quantization& b,
                  const ByteAdd::Quantization& sum, Bytes numbersA, Bytes numbersB) const {
    const xnn_quantization_params ofA = {a.zeroPoint, a.scale};
    const xnn_quantization_params ofB = {b.zeroPoint, b.scale};
    const xnn_quantization_params ofSum = {sum.zeroPoint, sum.scale};
    const size_t count = numbersA.size();
    Bytes sums(count + XNN_EXTRA_BYTES);
    numbersA.resize(count + XNN_EXTRA_BYTES);
    numbersB.resize(count + XNN_EXTRA_BYTES);
    xnn_operator_t raw = nullptr;
    EXPECT_EQ(xnn_create_binary_elementwise_nd(
                  xnn_binary_add, GetParam() ? xnn_datatype_qint8 : xnn_datatype_quint8, &ofA, &ofB,
                  &ofSum, 0, &raw),
              xnn_status_success);
    const XnnOperator op(raw);
    EXPECT_EQ(xnn_reshape_binary_elementwise_nd(raw, 1, &count, 1, &count, nullptr),
              xnn_status_success);
    EXPECT_EQ(xnn_setup_binary_elementwise_nd(raw, numbersA.data(), numbersB.data(), sums.data()),
              xnn_status_success);
    EXPECT_EQ(xnn_run_operator(raw, nullptr), xnn_status_success);
    sums.resize(count);
    return sums;
  }

  // Compares the sums of all pairs of numbers.
  void compare(const ByteAdd::Quantization& a, const ByteAdd::Quantization& b,
               const ByteAdd::Quantization& sum) {
    Bytes numbersA, numbersB;
    for (int i = 0; i < 256; ++i)
      for (int j = 0; j < 256; ++j) {
        numbersA.push_back(static_cast<uint8_t>(i));
        numbersB.push_back(static_cast<uint8_t>(j));
      }
    Bytes sums(numbersA.size());
    ByteAdd(a, b, sum, GetParam()).run(numbersA.data(), numbersB.data(), sums.size(), sums.data());
    ASSERT_EQ(sums, onXnnpack(a, b, sum, numbersA, numbersB))
        << a.scale << ' ' << a.zeroPoint << ' ' << b.scale << ' ' << b.zeroPoint << ' ' << sum.scale
        << ' ' << sum.zeroPoint;
  }
};

TEST_P(ByteAddTest, AllPairsAtTheLimits) {
  // Quotients from 2^-10 to just below 2^8, and those at which the factors get another exponent.
  for (const float scaleA : {0x1p-10f, 0x1.fffffep-1f, 1.0f, 0x1.000002p0f, 0x1.fffffep7f})
    for (const float scaleB : {0x1p-10f, 0.3f, 1.0f, 0x1.fffffep7f})
      for (const int32_t zeroA : {0, 255})
        for (const int32_t zeroB : {0, 128, 255})
          for (const int32_t zero : {0, 255})
            compare({scaleA, lowest() + zeroA}, {scaleB, lowest() + zeroB},
                    {1.0f, lowest() + zero});
}

TEST_P(ByteAddTest, AllPairsAtRandomScales) {
  std::mt19937 random(1);
  const auto scale = [&] {
    return std::ldexp(1.0f + static_cast<float>(random() % 1000003) * 0x1p-20f,
                      static_cast<int>(random() % 8) - 4);
  };
  const auto zero = [&] {
    return lowest() + static_cast<int32_t>(random() % 256);
  };
  for (int round = 0; round < 200; ++round)
    compare({scale(), zero()}, {scale(), zero()}, {scale(), zero()});
}

TEST_P(ByteAddTest, AllLengthsAlsoInPlace) {
  std::mt19937 random(2);
  const ByteAdd::Quantization a = {0.7f, lowest() + 100}, b = {0.4f, lowest() + 90},
                              sum = {0.9f, lowest() + 110};
  const ByteAdd add(a, b, sum, GetParam());
  for (size_t count = 0; count < 200; ++count) {
    Bytes numbersA(count), numbersB(count);
    for (uint8_t& number : numbersA) number = static_cast<uint8_t>(random());
    for (uint8_t& number : numbersB) number = static_cast<uint8_t>(random());
    Bytes expected(count), guarded(count + 1, 77);
    if (count > 0) expected = onXnnpack(a, b, sum, numbersA, numbersB);
    add.run(numbersA.data(), numbersB.data(), count, guarded.data());
    EXPECT_EQ(guarded.back(), 77) << count;
    guarded.pop_back();
    EXPECT_EQ(guarded, expected) << count;
    Bytes copy = numbersA;
    add.run(copy.data(), numbersB.data(), count, copy.data());
    EXPECT_EQ(copy, expected) << count;
    add.run(numbersA.data(), numbersB.data(), count, numbersB.data());
    EXPECT_EQ(numbersB, expected) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ByteAddTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Int8" : "Uint8"; });

}  // namespace
}  // namespace hearth::cpu
