// SPDX-License-Identifier: Apache-2.0
// For tests.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

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

}  // namespace hearth::ops
