// SPDX-License-Identifier: Apache-2.0
#include "llm/piece_normalizer.h"

#include <algorithm>

#include "llm/utf8.h"

namespace hearth::llm {
namespace {

// The longest text that a rule replaces, and how much longer a text may get.
constexpr size_t kMaxRuleBytes = 256;
constexpr size_t kMaxTimesLonger = 16;
constexpr size_t kAlwaysAllowedBytes = 1024;

// A unit of a double array (darts-clone): what leads to it, where its children are, and whether
// the first of them holds a value.
struct Unit {
  uint32_t bits;

  uint32_t label() const { return bits & 0x800000FF; }
  uint32_t offset() const { return (bits >> 10) << ((bits & 0x200) >> 6); }
  bool hasValue() const { return (bits & 0x100) != 0; }
  uint32_t value() const { return bits & 0x7FFFFFFF; }
};

struct Replacement {
  std::string_view text;
  size_t size = 0;  // of what it replaces, in bytes
};

// The longest text that a rule replaces, from `begin` on; of size 0 where there is none.
Replacement findRule(const SentencePieceTable& table, std::string_view text, size_t begin) {
  const auto units = table.ruleUnits();
  Replacement found;
  if (units.empty()) return found;
  const std::string_view rest = text.substr(begin, kMaxRuleBytes);
  uint32_t at = Unit{units[0]}.offset();
  for (size_t i = 0; i < rest.size(); ++i) {
    const auto byte = static_cast<uint8_t>(rest[i]);
    at ^= byte;
    if (at >= units.size() || Unit{units[at]}.label() != byte) break;
    const Unit unit{units[at]};
    at ^= unit.offset();
    if (at >= units.size()) break;
    const size_t value = Unit{units[at]}.value();
    if (!unit.hasValue() || value >= table.ruleTexts().size()) continue;
    const std::string_view made = table.ruleTexts().substr(value);
    found = {made.substr(0, std::min(made.find('\0'), made.size())), i + 1};
  }
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
