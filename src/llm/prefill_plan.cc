// SPDX-License-Identifier: Apache-2.0
#include "llm/prefill_plan.h"

#include <algorithm>

namespace hearth::llm {
namespace {

// Tokens of a prefill that take as long as decoding one: 4 to 10, by the processor.
constexpr size_t kDecodeCost = 6;
constexpr size_t kLongestUseful = 512;

}  // namespace

std::vector<Chunk> planPrefill(std::span<const size_t> lengths, size_t count, size_t position,
                               size_t capacity) {
  std::vector<Chunk> chunks;
  while (count > 0) {
    Chunk chunk;
    for (const size_t length : lengths) {
      if (length > capacity - position) break;
      if (length <= count) {
        chunk = {length, length};
      } else {
        // One that is not filled, unless a shorter one is, or decoding takes less time.
        if (chunk.length == 1 && length < kDecodeCost * count) chunk = {length, count};
        break;
      }
    }
    chunks.push_back(chunk);
    count -= chunk.tokens;
    position += chunk.tokens;
  }
  return chunks;
}

std::vector<size_t> usefulLengths(std::vector<size_t> lengths) {
  std::ranges::sort(lengths);
  const auto end = std::ranges::upper_bound(lengths, kLongestUseful);
  const auto first = lengths.begin() + (lengths.empty() ? 0 : 1);
  lengths.erase(std::max(end, first), lengths.end());
  return lengths;
}

}  // namespace hearth::llm
