// SPDX-License-Identifier: Apache-2.0
// SOFTMAX of 16-bit numbers by interpolation in tables, as in TFLite, with the same results to the
// last bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/fixed_point.h"

namespace hearth::ops {

class SoftmaxTable {
 public:
  // For rows of numbers in steps of `scale`.
  SoftmaxTable(float scale, float beta);

  // Results have 15 fraction bits. `result` may be the memory of `row`.
  void apply(std::span<const int16_t> row, std::span<int16_t> result) const;

 private:
  FixedMultiplier factor_;  // from the input's steps to the table's: 65535 for 10
};

}  // namespace hearth::ops
