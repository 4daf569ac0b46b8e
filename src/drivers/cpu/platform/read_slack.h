// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace hearth::cpu {

// Bytes that can be read behind every tensor: XNNPACK reads up to 16 past its inputs.
inline constexpr uint64_t kReadSlack = 64;

}  // namespace hearth::cpu
