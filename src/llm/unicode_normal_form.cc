// SPDX-License-Identifier: Apache-2.0
#include "llm/unicode_normal_form.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "llm/utf8.h"

namespace hearth::llm {
namespace {

struct Decomposition {
  uint32_t code;
  uint32_t first;
  uint32_t second;  // 0 = none
  bool isMade;      // of the two in form C
};

constexpr Decomposition kDecompositions[] = {
#include "llm/unicode_decompositions.inc"
};

// The first code point of each range, times 256, plus its canonical combining class.
constexpr uint32_t kClasses[] = {
#include "llm/unicode_combining_classes.inc"
};

// Text below this has no character that either form changes or reorders.
constexpr uint32_t kFirstCombining = 0x300;
constexpr uint32_t kFirstDecomposed = 0xC0;

// Syllables of Hangul are made by arithmetic: section 3.12 of the Unicode standard.
constexpr uint32_t kSyllable = 0xAC00;
constexpr uint32_t kLead = 0x1100;
constexpr uint32_t kVowel = 0x1161;
constexpr uint32_t kTail = 0x11A7;
constexpr uint32_t kLeads = 19;
constexpr uint32_t kVowels = 21;
constexpr uint32_t kTails = 28;
constexpr uint32_t kSyllables = kLeads * kVowels * kTails;

struct Mark {
  uint32_t code;
  uint8_t combiningClass;
};

uint8_t classOf(uint32_t code) {
  if (code < kFirstCombining) return 0;
  const auto* const after =
      std::upper_bound(std::begin(kClasses), std::end(kClasses), code << 8 | 0xFF);
  return static_cast<uint8_t>(*(after - 1) & 0xFF);
}

void decompose(uint32_t code, std::vector<Mark>* marks) {
  if (code - kSyllable < kSyllables) {
    const uint32_t index = code - kSyllable;
    marks->push_back({kLead + index / (kVowels * kTails), 0});
    marks->push_back({kVowel + index / kTails % kVowels, 0});
    if (index % kTails != 0) marks->push_back({kTail + index % kTails, 0});
    return;
  }
  const auto* const found =
      std::ranges::lower_bound(kDecompositions, code, {}, &Decomposition::code);
  if (code < kFirstDecomposed || found == std::end(kDecompositions) || found->code != code) {
    marks->push_back({code, classOf(code)});
    return;
  }
  // The table is at most three steps deep.
  decompose(found->first, marks);
  if (found->second != 0) decompose(found->second, marks);
}

const std::vector<Decomposition>& pairs() {
  static const auto* const sorted = [] {
    auto* const made = new std::vector<Decomposition>;
    for (const Decomposition& one : kDecompositions)
      if (one.isMade && one.second != 0) made->push_back(one);
    std::ranges::sort(*made, {},
                      [](const Decomposition& one) { return std::pair(one.first, one.second); });
    return made;
  }();
  return *sorted;
}

// What the two make; 0 = nothing.
uint32_t compose(uint32_t first, uint32_t second) {
  if (first - kLead < kLeads && second - kVowel < kVowels)
    return kSyllable + ((first - kLead) * kVowels + (second - kVowel)) * kTails;
  if (first - kSyllable < kSyllables && (first - kSyllable) % kTails == 0 && second > kTail &&
      second < kTail + kTails)
    return first + (second - kTail);
  const std::pair wanted(first, second);
  const auto found = std::ranges::lower_bound(pairs(), wanted, {}, [](const Decomposition& one) {
    return std::pair(one.first, one.second);
  });
  return found != pairs().end() && std::pair(found->first, found->second) == wanted ? found->code
                                                                                    : 0;
}

std::vector<Mark> canonical(std::string_view text) {
  std::vector<Mark> marks;
  marks.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Character character = decodeCharacter(text, at);
    decompose(character.code, &marks);
    at += character.size;
  }
  for (auto begin = marks.begin(); begin != marks.end();) {
    const auto isMark = [](const Mark& mark) {
      return mark.combiningClass != 0;
    };
    begin = std::find_if(begin, marks.end(), isMark);
    const auto end = std::find_if_not(begin, marks.end(), isMark);
    std::ranges::stable_sort(begin, end, {}, &Mark::combiningClass);
    begin = end;
  }
  return marks;
}

std::string textOf(const std::vector<Mark>& marks) {
  std::string text;
  for (const Mark& mark : marks) appendCharacter(mark.code, &text);
  return text;
}

bool hasOnlyBelow(std::string_view text, uint32_t limit) {
  for (size_t at = 0; at < text.size();) {
    const Character character = decodeCharacter(text, at);
    if (character.code >= limit) return false;
    at += character.size;
  }
  return true;
}

}  // namespace

std::string composed(std::string_view text) {
  if (hasOnlyBelow(text, kFirstCombining)) return std::string(text);
  std::vector<Mark> marks = canonical(text);
  size_t kept = 0;
  size_t starter = 0;
  bool hasStarter = false;
  for (size_t i = 0; i < marks.size(); ++i) {
    const Mark mark = marks[i];
    // Nothing between the two may have the same class, or be a starter.
    const bool isBlocked = !hasStarter || (kept != starter + 1 &&
                                           (marks[kept - 1].combiningClass == 0 ||
                                            marks[kept - 1].combiningClass >= mark.combiningClass));
    const uint32_t made = isBlocked ? 0 : compose(marks[starter].code, mark.code);
    if (made != 0) {
      marks[starter].code = made;
      continue;
    }
    if (mark.combiningClass == 0) {
      starter = kept;
      hasStarter = true;
    }
    marks[kept++] = mark;
  }
  marks.resize(kept);
  return textOf(marks);
}

std::string decomposed(std::string_view text) {
  if (hasOnlyBelow(text, kFirstDecomposed)) return std::string(text);
  return textOf(canonical(text));
}

}  // namespace hearth::llm
