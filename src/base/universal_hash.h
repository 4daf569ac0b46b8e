// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/sha256.h"

namespace hearth::base {

// A universal hash under a secret key, several times as fast as SHA-256: NH, the first layer of
// UMAC (RFC 4418), with four keys that are shifts of one another, over pieces of 8 KiB, and SHA-256
// over what that gives and the length. For somebody who knows neither the key nor any tag, two
// messages have the same tag with a probability of about 2^-128. Who knows the key can make such
// messages at will, so tags are compared only where the key is private. It does not depend on the
// processor. Threads may share an object.
//
// OpenSSL's GMAC is as fast, but it brings along all of libcrypto, whose symbols a process takes
// longer to look up than a start from the store takes.
class UniversalHash {
 public:
  using Key = std::array<uint8_t, 16>;
  using Tag = std::array<uint8_t, 16>;

  explicit UniversalHash(const Key& key);
  Tag of(std::span<const uint8_t> bytes) const;

 private:
  // Each half of a piece, in 32-bit words, is added to a key of its own.
  static constexpr size_t kHalf = 1024;
  static constexpr size_t kPiece = 2 * kHalf * sizeof(uint32_t);
  static constexpr size_t kPasses = 4;
  // By how many words the keys of two passes are shifted: any number will do, and with this one the
  // keys of each pass begin where a cache line does.
  static constexpr size_t kShift = 16;
  using Words = std::array<uint32_t, kHalf + (kPasses - 1) * kShift>;

  void add(Sha256& hash, const uint8_t* piece) const;

  alignas(64) std::array<Words, 2> keys_;
};

}  // namespace hearth::base
