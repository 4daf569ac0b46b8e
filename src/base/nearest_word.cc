// SPDX-License-Identifier: Apache-2.0
#include "base/nearest_word.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace hearth::base {
namespace {

// The mistakes between two words, by rows of the table of all beginnings of `from` and of `to`.
size_t mistakesBetween(std::string_view from, std::string_view to) {
  std::vector<size_t> beforeLast(to.size() + 1);
  std::vector<size_t> last(to.size() + 1);
  std::vector<size_t> row(to.size() + 1);
  for (size_t j = 0; j <= to.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= from.size(); ++i) {
    std::swap(beforeLast, last);
    std::swap(last, row);
    row[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t wrong = from[i - 1] == to[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + wrong});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
        row[j] = std::min(row[j], beforeLast[j - 2] + 1);
    }
  }
  return row[to.size()];
}

}  // namespace

std::optional<std::string> nearestWord(std::string_view typed, std::span<const std::string> words) {
  if (typed.size() < 2) return std::nullopt;
  std::optional<std::string> nearest;
  size_t fewest = 0;
  for (const std::string& word : words) {
    const bool isBeginning = word.starts_with(typed) || (!word.empty() && typed.starts_with(word));
    size_t mistakes = mistakesBetween(typed, word);
    // What is left out at the end counts as one mistake.
    if (isBeginning) mistakes = std::min<size_t>(mistakes, 1);
    if (!isBeginning && mistakes * 3 > std::max<size_t>(word.size(), 3)) continue;
    if (nearest && mistakes >= fewest) continue;
    nearest = word;
    fewest = mistakes;
  }
  return nearest;
}

}  // namespace hearth::base
