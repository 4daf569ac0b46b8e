// SPDX-License-Identifier: Apache-2.0
#include "llm/prefill_plan.h"

#include <algorithm>

namespace hearth::llm {
namespace {

// What a run takes beside its tokens, as if it had so many more: it reads all weights. 2 to 20 by
// the processor, since plans have to be the same everywhere: another division of a text gives other
// last bits.
constexpr size_t kRunCost = 8;
constexpr size_t kLongestUseful = 512;

}  // namespace

std::vector<Chunk> planPrefill(std::span<const size_t> lengths, size_t count, size_t position,
                               size_t capacity) {
  // The best plan for the last tokens, up to each number of them: what it costs, and how it begins.
  // All end at the same place.
  const size_t room = capacity - position - count;
  std::vector<size_t> costs(count + 1);
  std::vector<size_t> firsts(count + 1);
  for (size_t left = 1; left <= count; ++left) {
    costs[left] = costs[left - 1] + kRunCost + 1;
    firsts[left] = 1;
    for (const size_t length : lengths) {
      if (length > left + room) break;
      const size_t cost = costs[left - std::min(length, left)] + kRunCost + length;
      if (cost > costs[left]) continue;
      costs[left] = cost;
      firsts[left] = length;
    }
  }
  std::vector<Chunk> chunks;
  for (size_t left = count; left > 0; left -= chunks.back().tokens)
    chunks.push_back({firsts[left], std::min(firsts[left], left)});
  return chunks;
}

std::vector<size_t> shorterLengths(std::span<const size_t> lengths) {
  constexpr size_t kShortest = 16;
  std::vector<size_t> shorter;
  if (lengths.empty()) return shorter;
  for (size_t length = kShortest; length < *std::ranges::min_element(lengths); length *= 2)
    shorter.push_back(length);
  return shorter;
}

std::vector<size_t> usefulLengths(std::vector<size_t> lengths) {
  std::ranges::sort(lengths);
  const auto end = std::ranges::upper_bound(lengths, kLongestUseful);
  const auto first = lengths.begin() + (lengths.empty() ? 0 : 1);
  lengths.erase(std::max(end, first), lengths.end());
  return lengths;
}

}  // namespace hearth::llm
