// SPDX-License-Identifier: Apache-2.0
// The tokens of a language model: a text for each number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hearth::llm {

class Vocabulary {
 public:
  static constexpr size_t kMaxTokens = size_t{1} << 21;
  static constexpr size_t kMaxTokenBytes = 4096;

  // Error: kBadData for a number outside [0, kMaxTokens), a text that is too long, or a number that
  // has another text already. Of two numbers with one text, find() finds the first that was added.
  Status add(std::string_view text, int64_t id);

  std::optional<int32_t> find(std::string_view text) const;
  // Empty for a number without a token.
  std::string_view text(int32_t id) const;
  bool has(int32_t id) const;
  // One more than the largest number.
  size_t size() const { return places_.size(); }

 private:
  struct Place {
    uint32_t begin = 0;
    uint32_t size = kNone;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  void grow();
  size_t slotOf(std::string_view text) const;

  std::string texts_;
  std::vector<Place> places_;
  size_t count_ = 0;
  std::vector<int32_t> slots_;  // a table of numbers by text; -1 = free
};

}  // namespace hearth::llm
