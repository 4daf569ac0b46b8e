// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace hearth::conformance {
namespace {

using ::testing::HasSubstr;

template <typename T>
std::vector<uint8_t> bytesOf(const std::vector<T>& numbers) {
  const auto* const first = reinterpret_cast<const uint8_t*>(numbers.data());
  return {first, first + numbers.size() * sizeof(T)};
}

CaseValue floats(const std::vector<float>& numbers) {
  return {graph::OperandType::kTensorFloat32,
          {static_cast<uint32_t>(numbers.size())},
          false,
          bytesOf(numbers)};
}

std::string problemOf(const Status& status) {
  return status ? "" : status.error().message();
}

TEST(CompareTest, ElementsDifferByTheTolerancesAtMost) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Case testCase;
  testCase.tolerances[0] = {0.5f, 0.25f};
  const CaseValue expected = floats({0, 4, kInfinity});
  const auto compared = [&](const std::vector<float>& actual) {
    return problemOf(compareValues(testCase, expected, bytesOf(actual)));
  };
  EXPECT_EQ(compared({0.5f, 5.5f, kInfinity}), "");
  EXPECT_THAT(compared({0.5f, 5.75f, kInfinity}), HasSubstr("1 of 3 elements differ; element 1"));
  EXPECT_THAT(compared({0, 4, 3e38f}), HasSubstr("1 of 3 elements differ; element 2"));
  EXPECT_THAT(compared({NAN, 4, kInfinity}), HasSubstr("1 of 3 elements differ; element 0"));
}

TEST(CompareTest, SamplesHaveTheFrequenciesOfTheirClasses) {
  Case testCase;
  testCase.multinomialTolerance = 0.01f;
  const CaseValue logits = floats({std::log(3.0f), 0});
  const auto compared = [&](const std::vector<int32_t>& samples) {
    return problemOf(compareMultinomial(testCase, logits, bytesOf(samples)));
  };
  EXPECT_EQ(compared({0, 1, 0, 0}), "");
  EXPECT_THAT(compared({0, 1, 0, 1}), HasSubstr("Class 0 has the frequency 0.5"));
  EXPECT_THAT(compared({0, 0, 2, 1}), HasSubstr("Sample 2 is 2, there are 2 classes"));
  EXPECT_THAT(compared({-1, 0, 0, 1}), HasSubstr("Sample 0 is -1"));
  EXPECT_THAT(compared({}), HasSubstr("0 samples"));
}

}  // namespace
}  // namespace hearth::conformance
