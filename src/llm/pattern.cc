// SPDX-License-Identifier: Apache-2.0
#include "llm/pattern.h"

#include <algorithm>

#include "llm/utf8.h"

namespace hearth::llm {
namespace {

// Steps for each byte of a text: published expressions take up to about 20.
constexpr uint64_t kStepsPerByte = 200;
constexpr uint64_t kSpareSteps = 100'000;
constexpr size_t kMaxChoices = size_t{1} << 20;

}  // namespace

bool CharacterSet::contains(uint32_t code) const {
  bool isIn = false;
  for (const auto& [first, last] : ranges) isIn = isIn || (code >= first && code <= last);
  if (!isIn && categories != 0) isIn = (categoryBit(code) & categories) != 0;
  if (!isIn && hasWhiteSpace) isIn = isWhiteSpace(code);
  if (!isIn && hasOtherThanWhiteSpace) isIn = !isWhiteSpace(code);
  for (const CharacterSet& set : sets) isIn = isIn || set.contains(code);
  return isIn != isNegated;
}

PatternBudget::PatternBudget(size_t textBytes)
    : steps_(kSpareSteps + kStepsPerByte * std::min<uint64_t>(textBytes, UINT32_MAX)) {}

Result<std::optional<size_t>> Pattern::matchAt(std::string_view text, size_t begin, uint32_t from,
                                               PatternBudget* budget) const {
  // Where to go on when what was tried first fails. Of a repetition: the positions down to `low`
  // are tried as well, one character less each time.
  struct Choice {
    uint32_t instruction;
    size_t at;
    size_t low;
  };
  std::vector<Choice> choices;
  uint32_t next = from;
  size_t at = begin;
  for (;;) {
    if (!budget->spend() || choices.size() > kMaxChoices)
      return fail(ErrorCode::kBadData,
                  "An expression of the tokenizer takes too long on this text.");
    const Instruction& instruction = program_[next];
    bool isMatched = true;
    switch (instruction.operation) {
      case Operation::kMatch:
        return at;
      case Operation::kSet: {
        isMatched = at < text.size();
        if (!isMatched) break;
        const Character character = decodeCharacter(text, at);
        isMatched = sets_[instruction.set].contains(character.code);
        at += character.size;
        ++next;
        break;
      }
      case Operation::kRepeatSet: {
        size_t low = at;
        uint32_t count = 0;
        while (count < instruction.most && at < text.size()) {
          const Character character = decodeCharacter(text, at);
          if (!sets_[instruction.set].contains(character.code)) break;
          if (!budget->spend()) break;
          at += character.size;
          if (++count == instruction.least) low = at;
        }
        isMatched = count >= instruction.least;
        ++next;
        if (isMatched && !instruction.isPossessive && low < at) choices.push_back({next, at, low});
        break;
      }
      case Operation::kSplit:
        choices.push_back({instruction.second, at, at});
        next = instruction.first;
        continue;
      case Operation::kJump:
        next = instruction.first;
        continue;
      case Operation::kAhead:
      case Operation::kNotAhead: {
        // Bodies are nested as deeply as the expression is, which has a limit.
        HEARTH_ASSIGN(const std::optional<size_t> end, matchAt(text, at, next + 1, budget));
        isMatched = end.has_value() == (instruction.operation == Operation::kAhead);
        next = instruction.first;
        break;
      }
      case Operation::kBegin:
        isMatched = at == 0;
        ++next;
        break;
      case Operation::kEnd:
        isMatched = at == text.size();
        ++next;
        break;
    }
    if (isMatched) continue;
    if (choices.empty()) return std::nullopt;
    Choice& choice = choices.back();
    if (choice.low < choice.at) {
      do {
        --choice.at;
      } while (choice.at > choice.low && (static_cast<uint8_t>(text[choice.at]) & 0xC0) == 0x80);
    }
    next = choice.instruction;
    at = choice.at;
    if (choice.at == choice.low) choices.pop_back();
  }
}

Result<std::optional<Pattern::Match>> Pattern::find(std::string_view text, size_t begin,
                                                    PatternBudget* budget) const {
  for (size_t at = begin;; at += decodeCharacter(text, at).size) {
    HEARTH_ASSIGN(const std::optional<size_t> end, matchAt(text, at, 0, budget));
    if (end) return Match{at, *end};
    if (at >= text.size()) return std::nullopt;
  }
}

}  // namespace hearth::llm
