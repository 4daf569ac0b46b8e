// SPDX-License-Identifier: Apache-2.0
// Philox 4x32-10, the counter-based random numbers of TensorFlow's and TFLite's operations (Salmon
// et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): block i of a sequence is a function
// of i and the seeds, so that blocks can be computed in any order.
#pragma once

#include <array>
#include <cstdint>

namespace hearth::ops {

class Philox {
 public:
  static constexpr uint64_t kBlockSize = 4;
  using Block = std::array<uint32_t, kBlockSize>;

  // TensorFlow's two seeds: the first is the key, the second the upper half of the counter.
  Philox(uint64_t seed, uint64_t seed2) : key_(seed), upper_(seed2) {}

  // The numbers of a block are evenly distributed over all 32-bit numbers.
  Block block(uint64_t index) const;

 private:
  uint64_t key_;
  uint64_t upper_;
};

// [0, 1) in steps of 2^-23, from the lower bits.
float unitFloat(uint32_t bits);
// [0, 1) in steps of 2^-52.
double unitDouble(uint32_t upper, uint32_t lower);

}  // namespace hearth::ops
