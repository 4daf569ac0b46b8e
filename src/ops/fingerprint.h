// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace hearth::ops {

// FarmHash's 64-bit fingerprint, on which the results of LSH_PROJECTION are defined.
uint64_t fingerprint64(std::span<const uint8_t> bytes);

}  // namespace hearth::ops
