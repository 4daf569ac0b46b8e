// SPDX-License-Identifier: Apache-2.0
// Tokens that are found in the text before it is split into words.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace hearth::llm {

struct AddedToken {
  std::string text;
  int32_t id = 0;
  bool isSpecial = false;     // a mark of the model's, not part of a text
  bool isNormalized = false;  // found in the normalised text
  bool isWholeWord = false;   // not beside letters and digits
  bool takesSpaceBefore = false;
  bool takesSpaceBehind = false;
};

// Finds tokens in a text. Immutable once they are added; thread-safe then.
class AddedTokens {
 public:
  static constexpr size_t kMaxBytes = 512;  // of a token
  static constexpr size_t kMaxTokens = 1 << 16;

  struct Found {
    size_t begin = 0;
    size_t end = 0;
    const AddedToken* token = nullptr;
  };

  // Error: kBadData for an empty text, one that is too long, or too many tokens.
  Status add(AddedToken token);

  // The first occurrence from `begin` on, the longest of those that begin there. Special tokens are
  // passed over unless `hasSpecial`.
  std::optional<Found> find(std::string_view text, size_t begin, bool hasSpecial) const;

  const AddedToken* withId(int32_t id) const;
  const std::vector<AddedToken>& all() const { return tokens_; }

 private:
  uint32_t child(uint32_t node, uint8_t byte) const;

  std::vector<AddedToken> tokens_;
  std::unordered_map<int32_t, size_t> byId_;
  // A trie: the nodes that follow the root by their byte (0 = none), and all others by node and
  // byte.
  std::array<uint32_t, 256> first_{};
  std::unordered_map<uint64_t, uint32_t> children_;
  std::vector<uint32_t> ends_ = {0};  // by node: the token that ends there, plus 1
};

}  // namespace hearth::llm
