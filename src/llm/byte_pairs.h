// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding: a word becomes tokens by merging, again and again, the two neighbours whose
// merge stands first in the tokenizer's list.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "llm/vocabulary.h"

namespace hearth::llm {

struct BytePairOptions {
  bool isByteLevel = false;      // tokens are written as byte_level.h says
  bool hasByteFallback = false;  // characters without a token become the tokens <0x00> to <0xFF>
  bool takesWholeWords = false;  // a word that is a token is not merged
  bool fusesUnknown = false;     // neighbouring unknown characters become one token
  std::optional<int32_t> unknown;
};

// Immutable once its merges are added; thread-safe then.
class BytePairs {
 public:
  static constexpr size_t kMaxMerges = size_t{1} << 21;

  // The next merge of the list. Error: kBadData when one of the three texts is no token, or there
  // are too many.
  Status addMerge(const Vocabulary& vocabulary, std::string_view left, std::string_view right);

  // To be called once, behind the merges.
  void finish(const Vocabulary& vocabulary, const BytePairOptions& options);

  // Appends the tokens of one word. Takes time in proportion to n log n. Error: kBadData for a
  // character that has no token.
  Status encode(const Vocabulary& vocabulary, std::string_view word,
                std::vector<int32_t>* tokens) const;

 private:
  struct Merge {
    uint64_t pair = kNoPair;
    uint32_t rank = 0;
    int32_t made = 0;
  };
  static constexpr uint64_t kNoPair = UINT64_MAX;

  const Merge* find(int32_t left, int32_t right) const;
  size_t slotOf(uint64_t pair) const;
  void grow();
  Status split(const Vocabulary& vocabulary, std::string_view word,
               std::vector<int32_t>* symbols) const;
  void merge(std::vector<int32_t> symbols, std::vector<int32_t>* tokens) const;

  std::vector<Merge> slots_;
  size_t count_ = 0;
  uint32_t rank_ = 0;
  BytePairOptions options_;
  std::array<int32_t, 256> byteTokens_{};  // by byte; -1 = none
};

}  // namespace hearth::llm
