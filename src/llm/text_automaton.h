// SPDX-License-Identifier: Apache-2.0
// Which texts a string or a number of a JSON Schema may be, byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"

namespace hearth::llm {

// Where the next byte leads.
struct TextEdge {
  uint8_t first = 0;
  uint8_t last = 0;
  uint32_t target = 0;

  auto operator<=>(const TextEdge&) const = default;
};

// A deterministic automaton of bytes. From each state an end can be reached. Immutable;
// thread-safe.
class TextAutomaton {
 public:
  using State = uint32_t;

  struct Row {
    std::vector<TextEdge> edges;  // in their order, without overlap
    bool isEnd = false;
  };

  // Without what leads to no end. No value where there is no text at all.
  static std::optional<TextAutomaton> of(std::vector<Row> rows, State begin);

  State begin() const { return begin_; }
  // No value where the byte may not come.
  std::optional<State> next(State state, uint8_t byte) const;
  // Whether the text may end here.
  bool mayEnd(State state) const { return rows_[state].isEnd; }
  size_t size() const { return rows_.size(); }

 private:
  std::vector<Row> rows_;
  State begin_ = 0;
};

// How much work the automata of one schema may be: steps, and states that are kept. Errors are part
// of a sentence.
class AutomatonBudget {
 public:
  // Error: kUnsupported when it is spent.
  Status spendSteps(size_t count) { return spend(count, &steps_); }
  Status spendStates(size_t count) { return spend(count, &states_); }

 private:
  static Status spend(size_t count, size_t* left) {
    if (count > *left)
      return fail(ErrorCode::kUnsupported,
                  "the patterns, formats and limits of the schema have too many states");
    *left -= count;
    return {};
  }

  size_t steps_ = size_t{1} << 24;
  size_t states_ = size_t{1} << 15;
};

// The same over characters: `next` has a state for each of the classes that the ranges of
// characters belong to; a range that is not named leads nowhere.
struct CharacterAutomaton {
  static constexpr uint32_t kNowhere = UINT32_MAX;

  struct Range {
    uint32_t first = 0;
    uint32_t last = 0;
    uint32_t kind = 0;  // the index of its class
  };
  struct Row {
    std::vector<uint32_t> next;  // by class
    bool isEnd = false;
  };

  std::vector<Range> ranges;  // in their order, without overlap; no surrogates among them
  std::vector<Row> rows;      // the first one is the beginning
};

// Of texts with so many characters among those of the automaton.
Result<CharacterAutomaton> withLength(const CharacterAutomaton& automaton, uint32_t least,
                                      uint32_t most, AutomatonBudget* budget);

// What stands between the quotes of a string of JSON that has such a text. Characters are written
// as they are, or with a backslash and one letter where JSON asks for it; control characters that
// have no such letter are left out. No value where there is no text at all.
Result<std::optional<TextAutomaton>> stringAutomaton(const CharacterAutomaton& automaton,
                                                     AutomatonBudget* budget);

}  // namespace hearth::llm
