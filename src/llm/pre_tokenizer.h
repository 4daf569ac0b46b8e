// SPDX-License-Identifier: Apache-2.0
// How a tokenizer splits a text into words, which it then encodes one by one.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "llm/pattern.h"

namespace hearth::llm {

// What becomes of the text that a splitting expression matches.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// The steps of the format's pre_tokenizer; bytes are mapped to characters by BytePairs.
struct PreTokenizer {
  enum class Kind { kSplit, kPrependSpace, kMetaspace, kDigits };

  Kind kind = Kind::kSplit;
  std::optional<Pattern> pattern;  // of kSplit
  std::string text;                // of kSplit, in place of `pattern`; of kMetaspace: for a space
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool isInverted = false;   // kSplit: the expression matches the words
  bool isEachDigit = false;  // kDigits: each digit is a word
  bool isPrepended = false;  // kMetaspace: a word begins with the character
  bool isOnlyFirst = false;  // kMetaspace: only the first word of the text does
  bool isSplit = true;       // kMetaspace: the text is split at the character
};

// Words of a text: parts of it, or of what was made of it.
struct Words {
  std::vector<std::string_view> views;
  std::deque<std::string> made;
};

// The expression of GPT-2, which splits where a tokenizer says nothing else.
std::string_view gpt2Expression();

// Splits a normalised text, which must outlive the words. `isFirst`: nothing stands before it.
// Error: kBadData where an expression takes too long.
Result<Words> splitIntoWords(const std::vector<PreTokenizer>& preTokenizers, std::string_view text,
                             bool isFirst);

}  // namespace hearth::llm
