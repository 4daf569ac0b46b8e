// SPDX-License-Identifier: Apache-2.0
#include "llm/added_tokens.h"

#include <utility>

#include "llm/unicode.h"
#include "llm/utf8.h"

namespace hearth::llm {
namespace {

bool isOfWord(uint32_t code) {
  static const Categories kWord = *categoriesNamed("L") | *categoriesNamed("M") |
                                  *categoriesNamed("Nd") | *categoriesNamed("Pc");
  return (categoryBit(code) & kWord) != 0;
}

// Where the character in front of `at` begins.
size_t before(std::string_view text, size_t at) {
  do {
    --at;
  } while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80);
  return at;
}

bool isWholeWord(std::string_view text, size_t begin, size_t end) {
  if (begin > 0 && isOfWord(decodeCharacter(text, before(text, begin)).code)) return false;
  return end == text.size() || !isOfWord(decodeCharacter(text, end).code);
}

}  // namespace

Status AddedTokens::add(AddedToken token) {
  if (token.text.empty() || token.text.size() > kMaxBytes)
    return fail(ErrorCode::kBadData, "An added token has a text of {} bytes; they have 1 to {}.",
                token.text.size(), kMaxBytes);
  if (tokens_.size() == kMaxTokens)
    return fail(ErrorCode::kBadData, "The tokenizer has more than {} added tokens.", kMaxTokens);
  uint32_t node = 0;
  for (size_t i = 0; i < token.text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(token.text[i]);
    uint32_t& next = i == 0 ? first_[byte] : children_[uint64_t{node} << 8 | byte];
    if (next == 0) {
      next = static_cast<uint32_t>(ends_.size());
      ends_.push_back(0);
    }
    node = next;
  }
  if (ends_[node] == 0) ends_[node] = static_cast<uint32_t>(tokens_.size()) + 1;
  byId_.emplace(token.id, tokens_.size());
  tokens_.push_back(std::move(token));
  return {};
}

uint32_t AddedTokens::child(uint32_t node, uint8_t byte) const {
  if (node == 0) return first_[byte];
  const auto found = children_.find(uint64_t{node} << 8 | byte);
  return found == children_.end() ? 0 : found->second;
}

std::optional<AddedTokens::Found> AddedTokens::find(std::string_view text, size_t begin,
                                                    bool hasSpecial) const {
  for (size_t at = begin; at < text.size(); ++at) {
    std::optional<Found> longest;
    uint32_t node = 0;
    for (size_t end = at; end < text.size();) {
      node = child(node, static_cast<uint8_t>(text[end]));
      if (node == 0) break;
      ++end;
      if (ends_[node] == 0) continue;
      const AddedToken& token = tokens_[ends_[node] - 1];
      if (token.isSpecial && !hasSpecial) continue;
      if (token.isWholeWord && !isWholeWord(text, at, end)) continue;
      longest = Found{at, end, &token};
    }
    if (!longest) continue;
    if (longest->token->takesSpaceBefore)
      while (longest->begin > begin) {
        const size_t space = before(text, longest->begin);
        if (space < begin || !isWhiteSpace(decodeCharacter(text, space).code)) break;
        longest->begin = space;
      }
    if (longest->token->takesSpaceBehind)
      while (longest->end < text.size()) {
        const Character character = decodeCharacter(text, longest->end);
        if (!isWhiteSpace(character.code)) break;
        longest->end += character.size;
      }
    return longest;
  }
  return std::nullopt;
}

const AddedToken* AddedTokens::withId(int32_t id) const {
  const auto found = byId_.find(id);
  return found == byId_.end() ? nullptr : &tokens_[found->second];
}

}  // namespace hearth::llm
