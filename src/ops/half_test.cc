// SPDX-License-Identifier: Apache-2.0
#include "ops/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

namespace hearth::ops {
namespace {

TEST(HalfTest, AllHalvesAreWidenedAsByACast) {
  constexpr uint32_t kCount = 65536;
  std::vector<Half> halves(kCount);
  for (uint32_t i = 0; i < kCount; ++i) halves[i] = std::bit_cast<Half>(static_cast<uint16_t>(i));
  std::vector<float> floats(kCount);
  // One fewer: the last ones are not a whole vector.
  widenHalves(halves.data(), kCount - 1, floats.data());
  for (uint32_t i = 0; i < kCount - 1; ++i)
    ASSERT_EQ(std::bit_cast<uint32_t>(floats[i]),
              std::bit_cast<uint32_t>(static_cast<float>(halves[i])))
        << i;
  EXPECT_EQ(floats[kCount - 1], 0.0f);
}

// All exponents and signs, with mantissas around every place where rounding changes.
TEST(HalfTest, FloatsAreNarrowedAsByACast) {
  std::vector<float> floats;
  for (uint32_t high = 0; high < 512; ++high)
    for (uint32_t bit = 0; bit < 23; ++bit)
      for (uint32_t mantissa : {0u, 1u, 2u, 3u, 0x1fffu, 0x2aaaaau, 0x7fffffu})
        for (int32_t near = -1; near <= 1; ++near)
          floats.push_back(std::bit_cast<float>(
              high << 23 | (((mantissa << bit) + static_cast<uint32_t>(near)) & 0x7fffffu)));
  std::vector<Half> halves(floats.size());
  narrowFloats(floats.data(), floats.size(), halves.data());
  for (size_t i = 0; i < floats.size(); ++i)
    ASSERT_EQ(std::bit_cast<uint16_t>(halves[i]),
              std::bit_cast<uint16_t>(static_cast<Half>(floats[i])))
        << std::hex << std::bit_cast<uint32_t>(floats[i]);
}

}  // namespace
}  // namespace hearth::ops
