// SPDX-License-Identifier: Apache-2.0
#include "memory/arena.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

namespace hearth::memory {
namespace {

// The blocks that are placed already, by groups of steps: most blocks are in use for a few steps of
// thousands, and meet few others.
class PlacedBlocks {
 public:
  explicit PlacedBlocks(std::span<const ArenaBlock> blocks) : blocks_(blocks) {
    int32_t last = 0;
    for (const ArenaBlock& block : blocks) last = std::max(last, block.lastStep);
    steps_ = static_cast<size_t>(last) / groups_.size() + 1;
  }

  void add(size_t index) {
    const auto [first, last] = groupsOf(blocks_[index]);
    for (size_t group = first; group <= last; ++group) groups_[group].push_back(index);
  }

  // Calls `visit` once for each block that is in use at the same step as this one.
  template <typename Visit>
  void forEachBeside(const ArenaBlock& block, Visit visit) const {
    const auto [first, last] = groupsOf(block);
    for (size_t group = first; group <= last; ++group)
      for (const size_t index : groups_[group]) {
        const ArenaBlock& other = blocks_[index];
        const bool isFirstMeeting = group == std::max(first, groupsOf(other).first);
        if (isFirstMeeting && other.firstStep <= block.lastStep &&
            block.firstStep <= other.lastStep)
          visit(other);
      }
  }

 private:
  std::pair<size_t, size_t> groupsOf(const ArenaBlock& block) const {
    return {static_cast<size_t>(block.firstStep) / steps_,
            static_cast<size_t>(block.lastStep) / steps_};
  }

  std::span<const ArenaBlock> blocks_;
  // Few enough that a block which is in use all the time takes little memory in all of them.
  std::array<std::vector<size_t>, 64> groups_;
  size_t steps_ = 1;  // of a group
};

}  // namespace

std::expected<uint64_t, size_t> placeBlocks(std::span<ArenaBlock> blocks, uint64_t limit) {
  // Largest first, each into the tightest gap between the blocks that live at the same time.
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return blocks[i].bytes; });
  uint64_t arenaBytes = 0;
  PlacedBlocks placed(blocks);
  std::vector<std::pair<uint64_t, uint64_t>> live;
  for (const size_t index : order) {
    ArenaBlock& block = blocks[index];
    live.clear();
    placed.forEachBeside(block, [&](const ArenaBlock& other) {
      live.emplace_back(other.offset, other.offset + other.bytes);
    });
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
    if (isTooFar || (limit != 0 && end > limit)) return std::unexpected(index);
    arenaBytes = std::max(arenaBytes, end);
    placed.add(index);
  }
  return arenaBytes;
}

}  // namespace hearth::memory
