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

constexpr size_t kFirstMergeSlots = 1024;

uint64_t pairOf(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

}  // namespace

size_t BytePairs::slotOf(uint64_t pair) const {
  size_t slot = secretHash(pair) & (slots_.size() - 1);
  while (slots_[slot].pair != kNoPair && slots_[slot].pair != pair)
    slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void BytePairs::grow() {
  const std::vector<Merge> old = std::move(slots_);
  slots_.assign(old.empty() ? kFirstMergeSlots : 2 * old.size(), Merge());
  for (const Merge& merge : old)
    if (merge.pair != kNoPair) slots_[slotOf(merge.pair)] = merge;
}

const BytePairs::Merge* BytePairs::find(int32_t left, int32_t right) const {
  if (slots_.empty()) return nullptr;
  const Merge& merge = slots_[slotOf(pairOf(left, right))];
  return merge.pair == kNoPair ? nullptr : &merge;
}

Status BytePairs::addMerge(const Vocabulary& vocabulary, std::string_view left,
                           std::string_view right) {
  if (rank_ == kMaxMerges)
    return fail(ErrorCode::kBadData, "The tokenizer has more than {} merges.", kMaxMerges);
  const std::string made = std::string(left) + std::string(right);
  const auto leftToken = vocabulary.find(left);
  const auto rightToken = vocabulary.find(right);
  const auto madeToken = vocabulary.find(made);
  if (!leftToken || !rightToken || !madeToken)
    return fail(ErrorCode::kBadData, "Merge {} has a text that is no token.", rank_);
  if (2 * ++count_ > slots_.size()) grow();
  Merge& merge = slots_[slotOf(pairOf(*leftToken, *rightToken))];
  // Of a pair that is there twice, the last one counts.
  merge = {pairOf(*leftToken, *rightToken), rank_++, *madeToken};
  return {};
}

void BytePairs::finish(const Vocabulary& vocabulary, const BytePairOptions& options) {
  options_ = options;
  for (uint32_t byte = 0; byte < byteTokens_.size(); ++byte) {
    const auto token = options.isByteLevel
                           ? vocabulary.find(byteCharacter(static_cast<uint8_t>(byte)))
                           : vocabulary.find(base::formatText("<0x{:02X}>", byte));
    byteTokens_[byte] = token.value_or(-1);
  }
}

Status BytePairs::split(const Vocabulary& vocabulary, std::string_view word,
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
    if (const auto token = vocabulary.find(character)) {
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

void BytePairs::merge(std::vector<int32_t> symbols, std::vector<int32_t>* tokens) const {
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
    if (const Merge* const merge = find(left, right))
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

Status BytePairs::encode(const Vocabulary& vocabulary, std::string_view word,
                         std::vector<int32_t>* tokens) const {
  if (options_.takesWholeWords || word.size() <= 1) {
    std::string text;
    if (options_.isByteLevel)
      for (const char byte : word) text += byteCharacter(static_cast<uint8_t>(byte));
    else
      text = word;
    if (const auto token = vocabulary.find(text)) {
      tokens->push_back(*token);
      return {};
    }
  }
  std::vector<int32_t> symbols;
  HEARTH_TRY(split(vocabulary, word, &symbols));
  merge(std::move(symbols), tokens);
  return {};
}

}  // namespace hearth::llm
