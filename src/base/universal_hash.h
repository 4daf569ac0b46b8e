// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/sha256.h"

namespace hearth::base {

// A universal hash under a secret key, several times as fast as SHA-256, and the same function on
// every processor, so that machines which share a store know each other's tags. Over pieces of
// 8 KiB CLNH, a sum of products of polynomials over GF(2) (Lemire and Kaser's CLHASH), is computed
// twice, with keys that are shifts of one another; the tag is the beginning of SHA-256 over the
// results and the length.
// For somebody who knows neither the key nor any tag, two messages have the same tag with a
// probability of about 2^-128. Who knows the key can make such messages at will, so tags are
// compared only where the key is private. Threads may share an object.
//
// OpenSSL's GMAC brings along all of libcrypto, whose symbols a process takes longer to look up
// than a start from the store takes.
class UniversalHash {
 public:
  using Key = std::array<uint8_t, 16>;
  using Tag = std::array<uint8_t, 16>;

  // How the products are computed; all give the same tags. The first two have 48 and 20 GB/s where
  // SHA-256 has 1.9, measured with bytes in the cache of a processor that has both.
  enum class Kind : uint8_t {
    kWide,      // four at a time, with VPCLMULQDQ and AVX-512
    kWhole,     // with PCLMULQDQ, or PMULL on ARM64
    kNarrow,    // of products of bytes, with NEON
    kPortable,  // of integer products
  };
  // Those that the processor has, the fastest first.
  static std::vector<Kind> kinds();

  // Of the fastest kind.
  explicit UniversalHash(const Key& key) : UniversalHash(key, kinds().front()) {}
  UniversalHash(const Key& key, Kind kind);
  Tag of(std::span<const uint8_t> bytes) const;

 private:
  static constexpr size_t kPiece = 8192;
  // By how many bytes the keys of the second pass are shifted: those of both passes begin where a
  // cache line does.
  static constexpr size_t kShift = 64;
  using Keys = std::array<uint8_t, kPiece + kShift>;

  void add(Sha256& hash, const uint8_t* piece) const;

  const Kind kind_;
  alignas(64) Keys keys_;
};

}  // namespace hearth::base
