// SPDX-License-Identifier: Apache-2.0
// What the kinds of tokenizers have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace hearth::llm {

// Whether the text of special tokens stands for them. Text of users should not have that power.
enum class SpecialTokens { kAreText, kAreParsed };

// One kind of tokenizer; Tokenizer documents its functions. Immutable; thread-safe.
class TokenizerModel {
 public:
  virtual ~TokenizerModel() = default;

  // `text` is UTF-8 of at most Tokenizer::kMaxTextBytes. Error: kBadData.
  virtual Result<std::vector<int32_t>> encode(std::string_view text, SpecialTokens special,
                                              bool isFirst) const = 0;
  virtual void appendBytes(int32_t token, bool* isFirst, std::string* bytes) const = 0;
  virtual std::optional<std::pair<size_t, size_t>> findSpecial(std::string_view text,
                                                               size_t begin) const = 0;
  virtual std::optional<int32_t> specialToken(std::string_view text) const = 0;
  virtual bool isSpecial(int32_t token) const = 0;
  virtual std::string_view text(int32_t token) const = 0;
  virtual size_t size() const = 0;
  virtual std::string_view kind() const = 0;
};

}  // namespace hearth::llm
