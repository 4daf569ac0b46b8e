// SPDX-License-Identifier: Apache-2.0
#include "ops/philox.h"

namespace hearth::ops {
namespace {

constexpr uint64_t kMultipliers[] = {0xD2511F53, 0xCD9E8D57};
constexpr uint32_t kKeySteps[] = {0x9E3779B9, 0xBB67AE85};
constexpr int kRounds = 10;

constexpr uint32_t upperHalf(uint64_t value) {
  return static_cast<uint32_t>(value >> 32);
}
constexpr uint32_t lowerHalf(uint64_t value) {
  return static_cast<uint32_t>(value);
}

}  // namespace

Philox::Block Philox::block(uint64_t index) const {
  Block state = {lowerHalf(index), upperHalf(index), lowerHalf(upper_), upperHalf(upper_)};
  uint32_t key0 = lowerHalf(key_);
  uint32_t key1 = upperHalf(key_);
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultipliers[0] * state[0];
    const uint64_t product1 = kMultipliers[1] * state[2];
    state = {upperHalf(product1) ^ state[1] ^ key0, lowerHalf(product1),
             upperHalf(product0) ^ state[3] ^ key1, lowerHalf(product0)};
    key0 += kKeySteps[0];
    key1 += kKeySteps[1];
  }
  return state;
}

float unitFloat(uint32_t bits) {
  return static_cast<float>(bits & 0x7FFFFF) * 0x1p-23f;
}

double unitDouble(uint32_t upper, uint32_t lower) {
  return static_cast<double>(uint64_t{upper & 0xFFFFF} << 32 | lower) * 0x1p-52;
}

}  // namespace hearth::ops
