// SPDX-License-Identifier: Apache-2.0
#include "memory/arena.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

namespace hearth::memory {

std::expected<uint64_t, size_t> placeBlocks(std::span<ArenaBlock> blocks, uint64_t limit) {
  // Largest first, each into the tightest gap between the blocks that live at the same time.
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return blocks[i].bytes; });
  uint64_t arenaBytes = 0;
  std::vector<std::pair<uint64_t, uint64_t>> live;
  for (size_t position = 0; position < order.size(); ++position) {
    ArenaBlock& block = blocks[order[position]];
    live.clear();
    for (const size_t placed : std::span(order).first(position)) {
      const ArenaBlock& other = blocks[placed];
      if (other.firstStep <= block.lastStep && block.firstStep <= other.lastStep)
        live.emplace_back(other.offset, other.offset + other.bytes);
    }
    std::ranges::sort(live);
    uint64_t best = UINT64_MAX;
    uint64_t bestGap = UINT64_MAX;
    uint64_t cursor = 0;
    for (const auto& [begin, end] : live) {
      if (begin > cursor && begin - cursor >= block.bytes && begin - cursor < bestGap) {
        bestGap = begin - cursor;
        best = cursor;
      }
      cursor = std::max(cursor, end);
    }
    block.offset = best == UINT64_MAX ? cursor : best;
    uint64_t end;
    const bool isTooFar = __builtin_add_overflow(block.offset, block.bytes, &end);
    if (isTooFar || (limit != 0 && end > limit)) return std::unexpected(order[position]);
    arenaBytes = std::max(arenaBytes, end);
  }
  return arenaBytes;
}

}  // namespace hearth::memory
