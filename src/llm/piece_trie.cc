// SPDX-License-Identifier: Apache-2.0
#include "llm/piece_trie.h"

#include <algorithm>

namespace hearth::llm {

PieceTrie::Arrays PieceTrie::build(std::span<const std::pair<std::string_view, int32_t>> texts) {
  // What begins with the text of a node.
  struct Range {
    uint32_t begin;
    uint32_t end;
    uint32_t depth;
  };
  Arrays made;
  std::vector<Range> nodes = {{0, static_cast<uint32_t>(texts.size()), 0}};
  made.labels.push_back(0);
  for (size_t node = 0; node < nodes.size(); ++node) {
    auto [at, end, depth] = nodes[node];
    made.firstChildren.push_back(static_cast<uint32_t>(nodes.size()));
    const bool endsHere = at < end && texts[at].first.size() == depth;
    made.ids.push_back(endsHere ? texts[at].second : -1);
    if (endsHere) ++at;
    while (at < end) {
      const char label = texts[at].first[depth];
      const uint32_t begin = at;
      while (at < end && texts[at].first[depth] == label) ++at;
      made.labels.push_back(static_cast<uint8_t>(label));
      nodes.push_back({begin, at, depth + 1});
    }
  }
  made.firstChildren.push_back(static_cast<uint32_t>(nodes.size()));
  return made;
}

uint32_t PieceTrie::child(uint32_t node, uint8_t byte) const {
  if (ids_.empty()) return 0;
  const size_t begin = firstChildren_[node];
  const size_t end = firstChildren_[node + 1];
  if (begin > end || end > labels_.size()) return 0;
  const auto children = labels_.subspan(begin, end - begin);
  const auto found = std::ranges::lower_bound(children, byte);
  if (found == children.end() || *found != byte) return 0;
  return static_cast<uint32_t>(begin + static_cast<size_t>(found - children.begin()));
}

int32_t PieceTrie::find(std::string_view text) const {
  uint32_t node = 0;
  for (const char byte : text) {
    node = child(node, static_cast<uint8_t>(byte));
    if (node == 0) return -1;
  }
  return text.empty() ? -1 : id(node);
}

}  // namespace hearth::llm
