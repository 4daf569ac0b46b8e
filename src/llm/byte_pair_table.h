// SPDX-License-Identifier: Apache-2.0
// A `tokenizer.json` in the form in which it is used: one block of bytes that need not be read
// before, so that it can be mapped from a file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "llm/piece_trie.h"
#include "llm/vocabulary.h"

namespace hearth::llm {

// What two neighbouring tokens become, and when: lower ranks are merged first.
struct TokenMerge {
  uint32_t rank = 0;
  int32_t made = 0;
};

// The merges of a tokenizer in the order of its file.
class MergeList {
 public:
  static constexpr size_t kMaxMerges = size_t{1} << 21;

  struct Entry {
    int32_t left = 0;
    int32_t right = 0;
    TokenMerge merge;
  };

  // The next merge. Error: kBadData when one of the three texts is no token, or there are too many.
  Status add(const Vocabulary& vocabulary, std::string_view left, std::string_view right);

  // By left and right token. Of a pair that was added twice, the last merge counts.
  std::vector<Entry> sorted() const;

 private:
  std::vector<Entry> entries_;
};

// Immutable; copies share the bytes; thread-safe.
class BytePairTable {
 public:
  // The bytes of a table. `description`: what else the file says, for description(). Error:
  // kBadData when the table exceeds 1 GiB.
  static Result<std::vector<uint8_t>> make(const Vocabulary& vocabulary, const MergeList& merges,
                                           std::string_view description);

  static bool isTable(std::span<const uint8_t> bytes);

  // Uses bytes of make(), which begin at a multiple of 8 and live as long as `owner`. Error:
  // kBadData where they are cut off or of another version. Any other damage gives other tokens, and
  // nothing worse.
  static Result<BytePairTable> open(std::span<const uint8_t> bytes,
                                    std::shared_ptr<const void> owner);

  // As those of Vocabulary; no text is empty.
  std::optional<int32_t> find(std::string_view text) const;
  std::string_view text(int32_t id) const;
  bool has(int32_t id) const;
  size_t size() const { return places_.size(); }

  // What the neighbours become; null for two that are not merged.
  const TokenMerge* merge(int32_t left, int32_t right) const;

  std::string_view description() const { return description_; }

 private:
  struct Place {
    uint32_t begin = 0;
    uint32_t size = kNone;
  };
  static constexpr uint32_t kNone = UINT32_MAX;
  // What the bytes begin with. The arrays follow.
  struct Head {
    std::array<char, 8> magic;
    uint32_t tokens = 0;
    uint32_t textBytes = 0;
    uint32_t nodes = 0;  // of the trie of texts
    uint32_t merges = 0;
    uint32_t descriptionBytes = 0;
    uint32_t reserved = 0;
  };
  static constexpr std::array<char, 8> kMagic = {'H', 'R', 'T', 'H', 'B', 'P', '0', '1'};

  std::shared_ptr<const void> owner_;
  std::span<const Place> places_;  // of the tokens' texts
  std::string_view texts_;
  PieceTrie ids_;
  // The merges, sorted by their tokens: where those of each left token begin, and behind them where
  // the last one's end; and of each merge the right token and the result.
  std::span<const uint32_t> firstMerges_;
  std::span<const int32_t> rights_;
  std::span<const TokenMerge> merges_;
  std::string_view description_;
};

}  // namespace hearth::llm
