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
#include "llm/byte_pair_table.h"

namespace hearth::llm {

struct BytePairOptions {
  bool isByteLevel = false;      // tokens are written as byte_level.h says
  bool hasByteFallback = false;  // characters without a token become the tokens <0x00> to <0xFF>
  bool takesWholeWords = false;  // a word that is a token is not merged
  bool fusesUnknown = false;     // neighbouring unknown characters become one token
  std::optional<int32_t> unknown;
};

// Immutable; thread-safe.
class BytePairs {
 public:
  BytePairs() = default;
  BytePairs(const BytePairTable& table, const BytePairOptions& options);

  // Appends the tokens of one word. `table` is that of the constructor. Takes time in proportion to
  // n log n. Error: kBadData for a character that has no token.
  Status encode(const BytePairTable& table, std::string_view word,
                std::vector<int32_t>* tokens) const;

 private:
  Status split(const BytePairTable& table, std::string_view word,
               std::vector<int32_t>* symbols) const;

  BytePairOptions options_;
  std::array<int32_t, 256> byteTokens_{};  // by byte; -1 = none
};

}  // namespace hearth::llm
