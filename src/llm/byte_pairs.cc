// SPDX-License-Identifier: Apache-2.0
#include "llm/byte_pairs.h"

#include <queue>
#include <string>
#include <utility>

#include "base/format.h"
#include "llm/byte_level.h"
#include "llm/utf8.h"

namespace hearth::llm {
namespace {

// Appends what merging makes of the symbols.
void mergeSymbols(const BytePairTable& table, std::vector<int32_t> symbols,
                  std::vector<int32_t>* tokens) {
  // Symbols in a list; a candidate is out of date when a symbol of its pair has changed.
  struct Candidate {
    uint32_t rank;
    uint32_t at;
    int32_t left;
    int32_t right;
    int32_t made;
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  const auto count = static_cast<uint32_t>(symbols.size());
  std::vector<uint32_t> next(count);
  std::vector<uint32_t> previous(count);
  for (uint32_t i = 0; i < count; ++i) {
    next[i] = i + 1;
    previous[i] = i - 1;
  }
  std::priority_queue<Candidate> queue;
  const auto consider = [&](uint32_t at) {
    if (next[at] >= count) return;
    const int32_t left = symbols[at];
    const int32_t right = symbols[next[at]];
    if (const TokenMerge* const merge = table.merge(left, right))
      queue.push({merge->rank, at, left, right, merge->made});
  };
  for (uint32_t i = 0; i + 1 < count; ++i) consider(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    const uint32_t right = symbols[best.at] == best.left ? next[best.at] : count;
    if (right >= count || symbols[right] != best.right) continue;
    symbols[best.at] = best.made;
    symbols[right] = -1;
    next[best.at] = next[right];
    if (next[right] < count) previous[next[right]] = best.at;
    if (best.at > 0) consider(previous[best.at]);
    consider(best.at);
  }
  for (uint32_t i = 0; i < count; i = next[i]) tokens->push_back(symbols[i]);
}

}  // namespace

BytePairs::BytePairs(const BytePairTable& table, const BytePairOptions& options)
    : options_(options) {
  for (uint32_t byte = 0; byte < byteTokens_.size(); ++byte) {
    const auto token = options.isByteLevel ? table.find(byteCharacter(static_cast<uint8_t>(byte)))
                                           : table.find(base::formatText("<0x{:02X}>", byte));
    byteTokens_[byte] = token.value_or(-1);
  }
}

Status BytePairs::split(const BytePairTable& table, std::string_view word,
                        std::vector<int32_t>* symbols) const {
  bool isUnknown = false;
  const auto addUnknown = [&](std::string_view text) -> Status {
    if (!options_.unknown)
      return fail(ErrorCode::kBadData, "The tokenizer has no token for \"{}\".",
                  replaceInvalidUtf8(text));
    if (!isUnknown || !options_.fusesUnknown) symbols->push_back(*options_.unknown);
    isUnknown = true;
    return {};
  };
  for (size_t at = 0; at < word.size();) {
    if (options_.isByteLevel) {
      const int32_t token = byteTokens_[static_cast<uint8_t>(word[at])];
      if (token < 0) {
        HEARTH_TRY(addUnknown(byteCharacter(static_cast<uint8_t>(word[at]))));
      } else {
        symbols->push_back(token);
        isUnknown = false;
      }
      ++at;
      continue;
    }
    const std::string_view character = word.substr(at, decodeCharacter(word, at).size);
    at += character.size();
    if (const auto token = table.find(character)) {
      symbols->push_back(*token);
      isUnknown = false;
      continue;
    }
    bool isInBytes = options_.hasByteFallback;
    for (const char byte : character)
      isInBytes = isInBytes && byteTokens_[static_cast<uint8_t>(byte)] >= 0;
    if (!isInBytes) {
      HEARTH_TRY(addUnknown(character));
      continue;
    }
    for (const char byte : character) symbols->push_back(byteTokens_[static_cast<uint8_t>(byte)]);
    isUnknown = false;
  }
  return {};
}

Status BytePairs::encode(const BytePairTable& table, std::string_view word,
                         std::vector<int32_t>* tokens) const {
  if (options_.takesWholeWords || word.size() <= 1) {
    std::string text;
    if (options_.isByteLevel)
      for (const char byte : word) text += byteCharacter(static_cast<uint8_t>(byte));
    else
      text = word;
    if (const auto token = table.find(text)) {
      tokens->push_back(*token);
      return {};
    }
  }
  std::vector<int32_t> symbols;
  HEARTH_TRY(split(table, word, &symbols));
  mergeSymbols(table, std::move(symbols), tokens);
  return {};
}

}  // namespace hearth::llm
