// SPDX-License-Identifier: Apache-2.0
#include "llm/piece_normalizer.h"

#include <algorithm>

#include "base/double_array_trie.h"
#include "llm/utf8.h"

namespace hearth::llm {
namespace {

// The longest text that a rule replaces, and how much longer a text may get.
constexpr size_t kMaxRuleBytes = 256;
constexpr size_t kMaxTimesLonger = 16;
constexpr size_t kAlwaysAllowedBytes = 1024;

struct Replacement {
  std::string_view text;
  size_t size = 0;  // of what it replaces, in bytes
};

// The longest text that a rule replaces, from `begin` on; of size 0 where there is none.
Replacement findRule(const SentencePieceTable& table, std::string_view text, size_t begin) {
  const auto units = table.ruleUnits();
  const base::DoubleArrayTrie rules(reinterpret_cast<const uint8_t*>(units.data()), units.size());
  Replacement found;
  rules.forEachPrefix(text.substr(begin, kMaxRuleBytes),
                      [&](const base::DoubleArrayTrie::Match& match) {
                        if (match.value >= table.ruleTexts().size()) return;
                        const std::string_view made = table.ruleTexts().substr(match.value);
                        found = {made.substr(0, made.find('\0')), match.size};
                      });
  return found;
}

class PieceNormalizer {
 public:
  PieceNormalizer(const SentencePieceTable& table, std::string_view text, SpecialTokens special)
      : table_(table), text_(text), special_(special) {}

  Result<std::string> run(bool isFirst) {
    skipSpaces();
    if (at_ == text_.size()) return std::string();
    const bool getsSpace = table_.hasDummyPrefix() && isFirst;
    if (getsSpace && !table_.isSpaceSuffix()) made_ += space();
    bool isBehindSpace = table_.removesExtraSpaces();
    while (at_ < text_.size()) {
      Replacement part = next();
      at_ += part.size;
      while (isBehindSpace && part.text.starts_with(' ')) part.text.remove_prefix(1);
      if (part.text.empty()) continue;
      for (const char c : part.text)
        if (c == ' ')
          made_ += space();
        else
          made_ += c;
      isBehindSpace = table_.removesExtraSpaces() && part.text.ends_with(' ');
      if (made_.size() > kMaxTimesLonger * text_.size() + kAlwaysAllowedBytes)
        return fail(ErrorCode::kBadData,
                    "The tokenizer's normalization of {} bytes makes more than {} times as many.",
                    text_.size(), kMaxTimesLonger);
    }
    while (table_.removesExtraSpaces() && made_.ends_with(space()))
      made_.resize(made_.size() - space().size());
    if (getsSpace && table_.isSpaceSuffix()) made_ += space();
    return std::move(made_);
  }

 private:
  std::string_view space() const { return table_.escapesSpaces() ? kEscapedSpace : " "; }

  // What the text has next, and what becomes of it.
  Replacement next() const {
    if (const auto match = longestUserDefined(table_, text_, at_, special_); match.size > 0)
      return {text_.substr(at_, match.size), match.size};
    if (const Replacement rule = findRule(table_, text_, at_); rule.size > 0) return rule;
    const size_t size = decodeCharacter(text_, at_).size;
    return {text_.substr(at_, size), size};
  }

  void skipSpaces() {
    while (table_.removesExtraSpaces() && at_ < text_.size()) {
      const Replacement part = next();
      if (part.text != " ") return;
      at_ += part.size;
    }
  }

  const SentencePieceTable& table_;
  std::string_view text_;
  SpecialTokens special_;
  size_t at_ = 0;
  std::string made_;
};

}  // namespace

PieceTrie::Match longestUserDefined(const SentencePieceTable& table, std::string_view text,
                                    size_t begin, SpecialTokens special) {
  PieceTrie::Match match;
  const PieceTrie& trie = table.userDefined();
  uint32_t node = 0;
  for (size_t at = begin; at < text.size();) {
    node = trie.child(node, static_cast<uint8_t>(text[at]));
    if (node == 0) break;
    ++at;
    const int32_t id = trie.id(node);
    if (id >= 0 && (special == SpecialTokens::kAreParsed || !table.isSpecial(id)))
      match = {at - begin, id};
  }
  return match;
}

Result<std::string> normalizePieces(const SentencePieceTable& table, std::string_view text,
                                    SpecialTokens special, bool isFirst) {
  return PieceNormalizer(table, text, special).run(isFirst);
}

}  // namespace hearth::llm
