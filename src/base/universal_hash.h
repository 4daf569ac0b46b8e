// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/sha256.h"

namespace hearth::base {

// A universal hash under a secret key, several times as fast as SHA-256. Over pieces of 8 KiB one
// of these is computed several times, with keys that are shifts of one another; the tag is the
// beginning of SHA-256 over the results and the length:
// - NH, the first layer of UMAC (RFC 4418), four times,
// - CLNH, its form with products of polynomials over GF(2) (Lemire and Kaser's CLHASH), twice.
// For somebody who knows neither the key nor any tag, two messages have the same tag with a
// probability of about 2^-128. Who knows the key can make such messages at will, so tags are
// compared only where the key is private. Threads may share an object.
//
// OpenSSL's GMAC is as fast as NH, but it brings along all of libcrypto, whose symbols a process
// takes longer to look up than a start from the store takes.
class UniversalHash {
 public:
  using Key = std::array<uint8_t, 16>;
  using Tag = std::array<uint8_t, 16>;

  // The first two give the same tags. Measured with bytes in the cache of a processor that has all,
  // in GB/s: 48, 20 and 12, where SHA-256 has 1.9.
  enum class Kind : uint8_t {
    kWideClnh,  // with VPCLMULQDQ and AVX-512
    kClnh,      // with PCLMULQDQ
    kNh,
  };
  // Those that the processor has, the fastest first.
  static std::vector<Kind> kinds();

  // Of the fastest kind: processors with and without PCLMULQDQ make different tags.
  explicit UniversalHash(const Key& key) : UniversalHash(key, kinds().front()) {}
  UniversalHash(const Key& key, Kind kind);
  Tag of(std::span<const uint8_t> bytes) const;

 private:
  static constexpr size_t kPiece = 8192;
  static constexpr size_t kMostPasses = 4;
  // By how many bytes the keys of two passes are shifted: so that those of each begin where a cache
  // line does.
  static constexpr size_t kShift = 64;
  // NH has a key for each half of a piece.
  using Keys = std::array<uint8_t, kPiece + 2 * (kMostPasses - 1) * kShift>;

  void add(Sha256& hash, const uint8_t* piece) const;

  const Kind kind_;
  alignas(64) Keys keys_;
};

}  // namespace hearth::base
