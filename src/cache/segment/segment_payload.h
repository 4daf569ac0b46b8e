// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/sha256.h"

namespace hearth::cache {

// Bytes to be written as a segment, with the digests of their blocks (kSegmentBlock) where somebody
// has computed them already. A view.
struct SegmentPayload {
  SegmentPayload(std::span<const uint8_t> payload) : bytes(payload) {}
  SegmentPayload(const std::vector<uint8_t>& payload) : bytes(payload) {}
  SegmentPayload(std::span<const uint8_t> payload, std::span<const base::Sha256Digest> digests)
      : bytes(payload), blocks(digests) {}

  size_t size() const { return bytes.size(); }

  std::span<const uint8_t> bytes;
  std::span<const base::Sha256Digest> blocks;  // empty: not known
  // Whether the bytes may become others while they are written, so that each block has to be
  // compared with its digest once more on its way.
  bool mayChange = false;
};

}  // namespace hearth::cache
