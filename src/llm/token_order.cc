// SPDX-License-Identifier: Apache-2.0
#include "llm/token_order.h"

#include <algorithm>

namespace hearth::llm {

TokenOrder::TokenOrder(const Tokenizer& tokenizer) {
  const auto count = static_cast<int32_t>(tokenizer.size());
  for (int32_t token = 0; token < count; ++token) {
    if (tokenizer.isSpecial(token)) continue;
    // As behind other text, so that no space is dropped.
    bool isFirst = false;
    const auto begin = static_cast<uint32_t>(bytes_.size());
    tokenizer.appendBytes(token, &isFirst, &bytes_);
    const auto size = static_cast<uint32_t>(bytes_.size()) - begin;
    if (size != 0) entries_.push_back({.token = token, .begin = begin, .size = size});
  }
  std::ranges::sort(entries_, [&](const Entry& left, const Entry& right) {
    const int order = bytes(left).compare(bytes(right));
    return order != 0 ? order < 0 : left.token < right.token;
  });
  for (size_t i = 1; i < entries_.size(); ++i) {
    const auto differ = std::ranges::mismatch(bytes(entries_[i - 1]), bytes(entries_[i]));
    entries_[i].shared = static_cast<uint32_t>(differ.in2 - bytes(entries_[i]).begin());
  }
}

}  // namespace hearth::llm
