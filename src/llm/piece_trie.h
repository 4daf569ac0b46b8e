// SPDX-License-Identifier: Apache-2.0
// A trie of texts in three arrays, which can be written to a file and used where that is mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::llm {

// The nodes are numbered level by level, so that the children of a node follow each other; node 0
// is the root. A view; the arrays outlive it. Thread-safe.
class PieceTrie {
 public:
  struct Arrays {
    std::vector<uint32_t> firstChildren;  // by node, and behind them the number of nodes
    std::vector<int32_t> ids;             // by node; -1 = no text ends there
    std::vector<uint8_t> labels;          // by node: the byte that leads to it
  };
  struct Match {
    size_t size = 0;  // in bytes
    int32_t id = -1;
  };

  // `texts` are sorted, different and not empty.
  static Arrays build(std::span<const std::pair<std::string_view, int32_t>> texts);

  PieceTrie() = default;
  // `firstChildren` has one element more than the other two. Any numbers in it are safe.
  PieceTrie(std::span<const uint32_t> firstChildren, std::span<const int32_t> ids,
            std::span<const uint8_t> labels)
      : firstChildren_(firstChildren), ids_(ids), labels_(labels) {}

  size_t nodes() const { return ids_.size(); }

  // The node behind this one, 0 for none. `node` is one that this function has returned, or 0.
  uint32_t child(uint32_t node, uint8_t byte) const;
  // Of the text that ends at a node; -1 for none.
  int32_t id(uint32_t node) const { return ids_.empty() ? -1 : ids_[node]; }

  // The id of a text; -1 for none.
  int32_t find(std::string_view text) const;

 private:
  std::span<const uint32_t> firstChildren_;
  std::span<const int32_t> ids_;
  std::span<const uint8_t> labels_;
};

}  // namespace hearth::llm
