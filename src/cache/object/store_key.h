// SPDX-License-Identifier: Apache-2.0
// Names of what the weight store holds: SHA-256 digests, one type for each kind of object.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/sha256.h"

namespace hearth::cache {

// 32 bytes that name one object. Value type; ordered by its bytes.
template <typename Kind>
struct StoreKey {
  base::Sha256Digest bytes{};

  auto operator<=>(const StoreKey&) const = default;

  // 64 lower-case digits.
  std::string hex() const { return base::toHex(bytes); }

  // The inverse of hex(); nothing for any other text.
  static std::optional<StoreKey> fromHex(std::string_view text) {
    StoreKey key;
    if (text.size() != 2 * key.bytes.size()) return std::nullopt;
    for (size_t i = 0; i < text.size(); ++i) {
      const char digit = text[i];
      int value = 0;
      if (digit >= '0' && digit <= '9')
        value = digit - '0';
      else if (digit >= 'a' && digit <= 'f')
        value = digit - 'a' + 10;
      else
        return std::nullopt;
      key.bytes[i / 2] = static_cast<uint8_t>(key.bytes[i / 2] << 4 | value);
    }
    return key;
  }

  // The first eight bytes. They are as good as random, since a key is a digest.
  uint64_t prefix() const {
    uint64_t value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
};

using SegmentKey = StoreKey<struct SegmentKind>;
using PlanKey = StoreKey<struct PlanKind>;

}  // namespace hearth::cache

template <typename Kind>
struct std::hash<hearth::cache::StoreKey<Kind>> {
  size_t operator()(const hearth::cache::StoreKey<Kind>& key) const {
    return static_cast<size_t>(key.prefix());
  }
};
