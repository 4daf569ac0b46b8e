// SPDX-License-Identifier: Apache-2.0
#include "llm/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "llm/unicode.h"
#include "llm/utf8.h"

namespace hearth::llm {
namespace {

struct Piece {
  std::string_view text;
  bool isMatch = false;
};

// Appends [begin, end) of the text unless it is empty.
void addPiece(std::string_view text, size_t begin, size_t end, bool isMatch,
              std::vector<Piece>* pieces) {
  if (begin < end) pieces->push_back({text.substr(begin, end - begin), isMatch});
}

Result<std::vector<Piece>> matches(const PreTokenizer& splitter, std::string_view text,
                                   PatternBudget* budget) {
  std::vector<Piece> pieces;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    size_t begin = 0;
    size_t end = 0;
    if (splitter.pattern) {
      HEARTH_ASSIGN(const auto match, splitter.pattern->find(text, at, budget));
      if (!match) break;
      begin = match->begin;
      end = match->end;
    } else {
      begin = splitter.text.empty() ? std::string_view::npos : text.find(splitter.text, at);
      if (begin == std::string_view::npos) break;
      end = begin + splitter.text.size();
    }
    if (begin == end) {
      // An empty match splits nothing.
      if (end >= text.size()) break;
      at = end + decodeCharacter(text, end).size;
      continue;
    }
    addPiece(text, done, begin, splitter.isInverted, &pieces);
    addPiece(text, begin, end, !splitter.isInverted, &pieces);
    done = at = end;
  }
  addPiece(text, done, text.size(), splitter.isInverted, &pieces);
  return pieces;
}

// Two views that lie side by side, as one.
std::string_view joined(std::string_view left, std::string_view right) {
  return {left.data(), left.size() + right.size()};
}

void arrange(const std::vector<Piece>& pieces, SplitBehavior behavior,
             std::vector<std::string_view>* words) {
  bool wasMatch = false;
  bool isFirst = true;
  for (const Piece& piece : pieces) {
    bool isJoined = false;
    switch (behavior) {
      case SplitBehavior::kRemoved:
        if (piece.isMatch) continue;
        break;
      case SplitBehavior::kIsolated:
        break;
      case SplitBehavior::kMergedWithPrevious:
        isJoined = piece.isMatch && !wasMatch;
        break;
      case SplitBehavior::kMergedWithNext:
        isJoined = !piece.isMatch && wasMatch;
        break;
      case SplitBehavior::kContiguous:
        isJoined = piece.isMatch == wasMatch;
        break;
    }
    if (isJoined && !isFirst)
      words->back() = joined(words->back(), piece.text);
    else
      words->push_back(piece.text);
    wasMatch = piece.isMatch;
    isFirst = false;
  }
}

void splitDigits(const PreTokenizer& splitter, std::string_view text,
                 std::vector<std::string_view>* words) {
  static const Categories kNumber = *categoriesNamed("N");
  std::vector<Piece> pieces;
  for (size_t at = 0; at < text.size();) {
    const Character character = decodeCharacter(text, at);
    addPiece(text, at, at + character.size, (categoryBit(character.code) & kNumber) != 0, &pieces);
    at += character.size;
  }
  // Other characters stay together; so do digits unless each is a word.
  for (size_t i = 0; i < pieces.size(); ++i) {
    const bool isSame = i > 0 && pieces[i].isMatch == pieces[i - 1].isMatch;
    if (isSame && !(pieces[i].isMatch && splitter.isEachDigit))
      words->back() = joined(words->back(), pieces[i].text);
    else
      words->push_back(pieces[i].text);
  }
}

void splitAtMetaspace(const PreTokenizer& splitter, std::string_view text, bool isFirst,
                      Words* words) {
  std::string made;
  if (splitter.isPrepended && (isFirst || !splitter.isOnlyFirst) && !text.starts_with(' ') &&
      !text.starts_with(splitter.text))
    made = splitter.text;
  for (const char c : text)
    if (c == ' ')
      made += splitter.text;
    else
      made.push_back(c);
  const std::string_view whole = words->made.emplace_back(std::move(made));
  if (!splitter.isSplit || splitter.text.empty()) {
    words->views.push_back(whole);
    return;
  }
  for (size_t begin = 0; begin < whole.size();) {
    const size_t from = whole.substr(begin).starts_with(splitter.text) ? splitter.text.size() : 0;
    const size_t end = std::min(whole.find(splitter.text, begin + from), whole.size());
    words->views.push_back(whole.substr(begin, end - begin));
    begin = end;
  }
}

}  // namespace

std::string_view gpt2Expression() {
  return R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
}

Result<Words> splitIntoWords(const std::vector<PreTokenizer>& preTokenizers, std::string_view text,
                             bool isFirst) {
  Words words;
  if (!text.empty()) words.views.push_back(text);
  for (const PreTokenizer& step : preTokenizers) {
    PatternBudget budget(text.size());
    const std::vector<std::string_view> old = std::exchange(words.views, {});
    for (size_t i = 0; i < old.size(); ++i) {
      switch (step.kind) {
        case PreTokenizer::Kind::kSplit: {
          HEARTH_ASSIGN(const std::vector<Piece> pieces, matches(step, old[i], &budget));
          arrange(pieces, step.behavior, &words.views);
          break;
        }
        case PreTokenizer::Kind::kPrependSpace:
          if (old[i].starts_with(' '))
            words.views.push_back(old[i]);
          else
            words.views.push_back(words.made.emplace_back(" " + std::string(old[i])));
          break;
        case PreTokenizer::Kind::kMetaspace:
          splitAtMetaspace(step, old[i], isFirst && i == 0, &words);
          break;
        case PreTokenizer::Kind::kDigits:
          splitDigits(step, old[i], &words.views);
          break;
      }
    }
  }
  return words;
}

}  // namespace hearth::llm
