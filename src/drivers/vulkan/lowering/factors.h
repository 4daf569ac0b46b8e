// SPDX-License-Identifier: Apache-2.0
// The factors of quantised sums, as requantize.glsl has them.
#pragma once

#include <cstdint>
#include <vector>

namespace hearth::vulkan {

// Bytes of a factor.
inline constexpr uint64_t kFactorBytes = 12;

// Of each factor, which is positive, its mantissa and exponent as a double has them.
std::vector<uint8_t> factorBytes(const std::vector<double>& factors);

}  // namespace hearth::vulkan
