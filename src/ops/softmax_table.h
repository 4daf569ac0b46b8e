// SPDX-License-Identifier: Apache-2.0
// SOFTMAX of 16-bit numbers by tables between whose entries it interpolates, as TFLite does, to the
// last bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/fixed_point.h"

namespace hearth::ops {

class SoftmaxTable {
 public:
  // For rows of numbers in steps of `scale`. `count` is how many there will be in all.
  SoftmaxTable(float scale, float beta, uint64_t count);

  // Results have 15 fraction bits. They may lie where the row does.
  void apply(std::span<const int16_t> row, std::span<int16_t> result) const;

 private:
  int16_t exponential(int32_t belowHighest) const;

  FixedMultiplier factor_;             // from steps to those of the table, 65535 for 10
  std::vector<int16_t> exponentials_;  // of all distances, where that saves time
};

}  // namespace hearth::ops
