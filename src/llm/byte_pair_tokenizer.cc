// SPDX-License-Identifier: Apache-2.0
#include "llm/byte_pair_tokenizer.h"

#include "llm/byte_level.h"
#include "llm/utf8.h"

namespace hearth::llm {
const AddedToken* BytePairTokenizer::added(int32_t token) const {
  const AddedToken* const plain = addedPlain_.withId(token);
  return plain != nullptr ? plain : addedNormalized_.withId(token);
}

Status BytePairTokenizer::encodeWords(std::string_view text, bool isFirst,
                                      std::vector<int32_t>* tokens) const {
  HEARTH_ASSIGN(const Words words, splitIntoWords(preTokenizers_, text, isFirst));
  for (const std::string_view word : words.views) HEARTH_TRY(pairs_.encode(table_, word, tokens));
  return {};
}

Status BytePairTokenizer::encodeNormalized(std::string_view text, bool isFirst,
                                           SpecialTokens special,
                                           std::vector<int32_t>* tokens) const {
  HEARTH_ASSIGN(const std::string normalized, normalize(normalizers_, text));
  size_t done = 0;
  const auto words = [&](size_t end) {
    return encodeWords(std::string_view(normalized).substr(done, end - done), isFirst && done == 0,
                       tokens);
  };
  while (const auto found =
             addedNormalized_.find(normalized, done, special == SpecialTokens::kAreParsed)) {
    HEARTH_TRY(words(found->begin));
    tokens->push_back(found->token->id);
    done = found->end;
  }
  return words(normalized.size());
}

Result<std::vector<int32_t>> BytePairTokenizer::encode(std::string_view text, SpecialTokens special,
                                                       bool isFirst) const {
  std::vector<int32_t> tokens;
  size_t done = 0;
  while (const auto found = addedPlain_.find(text, done, special == SpecialTokens::kAreParsed)) {
    HEARTH_TRY(encodeNormalized(text.substr(done, found->begin - done), isFirst && done == 0,
                                special, &tokens));
    tokens.push_back(found->token->id);
    done = found->end;
  }
  HEARTH_TRY(encodeNormalized(text.substr(done), isFirst && done == 0, special, &tokens));
  return tokens;
}

void BytePairTokenizer::appendBytes(int32_t token, bool* isFirst, std::string* bytes) const {
  const AddedToken* const one = added(token);
  if (one != nullptr && one->isSpecial) return;
  const bool wasFirst = std::exchange(*isFirst, false);
  if (!table_.has(token)) {
    bytes->append(kReplacementText);
    return;
  }
  std::string_view text = table_.text(token);
  if (one != nullptr) {
    bytes->append(text);
    return;
  }
  if (isByteLevel_) {
    llm::appendBytes(text, bytes);
    return;
  }
  if (const auto byte = byteOfToken(text); byte && hasByteTokens_) {
    bytes->push_back(static_cast<char>(*byte));
    return;
  }
  if (wasFirst && isFirstSpaceDropped_) {
    if (!space_.empty() && text.starts_with(space_))
      text.remove_prefix(space_.size());
    else if (text.starts_with(' '))
      text.remove_prefix(1);
  }
  while (!text.empty()) {
    if (!space_.empty() && text.starts_with(space_)) {
      bytes->push_back(' ');
      text.remove_prefix(space_.size());
    } else {
      bytes->push_back(text[0]);
      text.remove_prefix(1);
    }
  }
}

std::optional<std::pair<size_t, size_t>> BytePairTokenizer::findSpecial(std::string_view text,
                                                                        size_t begin) const {
  std::optional<AddedTokens::Found> first;
  for (const AddedTokens* const added : {&addedPlain_, &addedNormalized_}) {
    // Others may stand before it.
    for (size_t from = begin;;) {
      const auto found = added->find(text, from, true);
      if (!found || (first && found->begin >= first->begin)) break;
      if (found->token->isSpecial) {
        first = found;
        break;
      }
      from = found->end;
    }
  }
  if (!first) return std::nullopt;
  return std::pair(first->begin, first->end - first->begin);
}

std::optional<int32_t> BytePairTokenizer::specialToken(std::string_view text) const {
  const auto id = table_.find(text);
  return id && isSpecial(*id) ? id : std::nullopt;
}

bool BytePairTokenizer::isSpecial(int32_t token) const {
  const AddedToken* const one = added(token);
  return one != nullptr && one->isSpecial;
}

}  // namespace hearth::llm
