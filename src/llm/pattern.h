// SPDX-License-Identifier: Apache-2.0
// Regular expressions of tokenizers, which come with strangers' models: the part of Oniguruma's
// syntax that published tokenizers use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "llm/unicode.h"

namespace hearth::llm {

// Characters: those of the ranges and categories, or all others.
struct CharacterSet {
  Categories categories = 0;
  bool hasWhiteSpace = false;
  bool hasOtherThanWhiteSpace = false;
  bool isNegated = false;
  std::vector<std::pair<uint32_t, uint32_t>> ranges;  // first and last
  std::vector<CharacterSet> sets;                     // whose characters belong to it, too

  bool contains(uint32_t code) const;
};

// How much work the searches in one text may do.
class PatternBudget {
 public:
  explicit PatternBudget(size_t textBytes);
  bool spend() { return steps_ > 0 && --steps_ > 0; }

 private:
  uint64_t steps_;
};

// An expression: characters, classes with \p{…}, \s, \d and \w, groups that capture nothing,
// alternatives, look-ahead, (?i:…) for letters of ASCII, and repetitions, greedy or possessive.
// Immutable; thread-safe.
class Pattern {
 public:
  struct Match {
    size_t begin = 0;
    size_t end = 0;
  };

  // Error: kBadData for an expression that is wrong, kUnsupported for one that needs more.
  static Result<Pattern> compile(std::string_view expression);

  // The first match from `begin` on in valid UTF-8; alternatives count in their order. Error:
  // kBadData when the budget is spent.
  Result<std::optional<Match>> find(std::string_view text, size_t begin,
                                    PatternBudget* budget) const;

 private:
  friend class PatternCompiler;

  enum class Operation : uint8_t {
    kSet,
    kRepeatSet,
    kSplit,
    kJump,
    kAhead,
    kNotAhead,
    kBegin,
    kEnd,
    kMatch
  };
  struct Instruction {
    Operation operation = Operation::kMatch;
    bool isPossessive = false;
    uint32_t set = 0;  // of kSet and kRepeatSet: index into sets_
    // kSplit: tried first and second. kJump: the target. Look-ahead: where its body ends.
    uint32_t first = 0;
    uint32_t second = 0;
    uint32_t least = 0;
    uint32_t most = 0;
  };

  Result<std::optional<size_t>> matchAt(std::string_view text, size_t begin, uint32_t from,
                                        PatternBudget* budget) const;

  std::vector<Instruction> program_;
  std::vector<CharacterSet> sets_;
};

}  // namespace hearth::llm
