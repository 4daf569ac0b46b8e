// SPDX-License-Identifier: Apache-2.0
// Arrays that follow each other in one block of bytes, each at a multiple of 8: what the table of a
// tokenizer consists of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "llm/piece_trie.h"

namespace hearth::llm {

inline constexpr size_t kTableAlignment = 8;
inline constexpr size_t kMaxTableBytes = size_t{1} << 30;

class TableWriter {
 public:
  template <typename T>
  void add(std::span<const T> values) {
    bytes_.resize((bytes_.size() + kTableAlignment - 1) / kTableAlignment * kTableAlignment);
    const auto* const begin = reinterpret_cast<const uint8_t*>(values.data());
    bytes_.insert(bytes_.end(), begin, begin + values.size_bytes());
  }
  void add(std::string_view text) { add(std::span(text.data(), text.size())); }
  void add(const PieceTrie::Arrays& trie) {
    add(std::span<const uint32_t>(trie.firstChildren));
    add(std::span<const int32_t>(trie.ids));
    add(std::span<const uint8_t>(trie.labels));
  }
  std::vector<uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<uint8_t> bytes_;
};

// Reads them back as views. What does not fit is empty, and isWhole() is false then.
class TableReader {
 public:
  // `bytes` begin at a multiple of 8.
  explicit TableReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  template <typename T>
  std::span<const T> take(size_t count) {
    const size_t begin = (at_ + kTableAlignment - 1) / kTableAlignment * kTableAlignment;
    if (begin > bytes_.size() || count > (bytes_.size() - begin) / sizeof(T)) {
      isWhole_ = false;
      return {};
    }
    at_ = begin + count * sizeof(T);
    return {reinterpret_cast<const T*>(bytes_.data() + begin), count};
  }
  std::string_view takeText(size_t size) {
    const auto bytes = take<char>(size);
    return {bytes.data(), bytes.size()};
  }
  PieceTrie takeTrie(size_t nodes) {
    const auto firstChildren = take<uint32_t>(nodes + 1);
    const auto ids = take<int32_t>(nodes);
    const auto labels = take<uint8_t>(nodes);
    return isWhole_ ? PieceTrie(firstChildren, ids, labels) : PieceTrie();
  }
  bool isWhole() const { return isWhole_; }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  bool isWhole_ = true;
};

}  // namespace hearth::llm
