// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace hearth::cache {

// Identifies one boot of the machine. All zeros: unknown, which equals no boot, not even itself.
using BootId = std::array<uint8_t, 16>;

inline bool isSameBoot(const BootId& a, const BootId& b) {
  return a != BootId{} && a == b;
}

// Parses a UUID in its usual text form; all zeros for any other text.
BootId parseBootId(std::string_view text);

// The kernel's (/proc/sys/kernel/random/boot_id), read once. Thread-safe.
const BootId& currentBootId();

}  // namespace hearth::cache
