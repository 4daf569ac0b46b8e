// SPDX-License-Identifier: Apache-2.0
// For tests.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "ops/testing/operation_builder.h"

namespace hearth::ops {

// Whole numbers in [lowest, highest]; equal for all calls with the same count.
template <typename T>
std::vector<T> randomValues(size_t count, int lowest, int highest) {
  std::mt19937 random(static_cast<unsigned>(count));
  std::uniform_int_distribution<int> draw(lowest, highest);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(draw(random));
  return values;
}

// `first` and the numbers that follow it.
inline std::vector<float> counting(size_t count, float first = 1.0f) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

// The result of an operation on numbers. An error fails the test.
inline std::vector<float> apply(OperationType type, std::vector<float> values) {
  OperationBuilder builder(type);
  const Dimensions dimensions = {static_cast<uint32_t>(values.size())};
  builder.input(dimensions, std::move(values)).output();
  EXPECT_TRUE(builder.run());
  return builder.result<float>();
}

}  // namespace hearth::ops
