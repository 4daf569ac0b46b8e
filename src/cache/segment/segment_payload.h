// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/sha256.h"

namespace hearth::cache {

// A view of bytes that are to be written as a segment, with the digests of their blocks
// (kSegmentBlock) if somebody has computed them already.
struct SegmentPayload {
  SegmentPayload(std::span<const uint8_t> payload) : bytes(payload) {}
  SegmentPayload(const std::vector<uint8_t>& payload) : bytes(payload) {}
  SegmentPayload(std::span<const uint8_t> payload, std::span<const base::Sha256Digest> digests)
      : bytes(payload), blocks(digests) {}

  size_t size() const { return bytes.size(); }

  std::span<const uint8_t> bytes;
  std::span<const base::Sha256Digest> blocks;  // empty: not yet computed
  // Whether the bytes may change while they are written; each block is then compared with its
  // digest again on its way.
  bool mayChange = false;
};

}  // namespace hearth::cache
