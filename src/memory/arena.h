// SPDX-License-Identifier: Apache-2.0
// Where tensors lie in one piece of memory that a run of steps uses, so that those which live at
// different times share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>

namespace hearth::memory {

// A piece of the arena that is in use from one step to another, both included. Steps count from 0.
struct ArenaBlock {
  uint64_t bytes = 0;  // a multiple of the alignment that the offsets are to have
  int32_t firstStep = 0;
  int32_t lastStep = 0;
  uint64_t offset = 0;  // from the arena's start; set by placeBlocks()
};

// Sets the offset of each block, so that blocks which are in use at the same step never overlap.
// Returns the size of the arena in bytes, or the index of the first block that ends behind `limit`
// bytes (0 = no limit) or behind 2^64 - 1.
std::expected<uint64_t, size_t> placeBlocks(std::span<ArenaBlock> blocks, uint64_t limit);

}  // namespace hearth::memory
