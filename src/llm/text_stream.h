// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "llm/tokenizer.h"

namespace hearth::llm {

// The text of tokens that come one by one, in whole characters, up to the first of some texts that
// end it. Used by one thread at a time; the tokenizer must outlive it.
class TextStream {
 public:
  // `shown`: special tokens that stand for their text.
  TextStream(const Tokenizer& tokenizer, std::vector<std::string> stops,
             std::vector<int32_t> shown = {});

  // The text that is certain after one more token: no token to come can change it or make it part
  // of an end.
  std::string add(int32_t token);

  // What is left when no more tokens come. Bytes that are no character become U+FFFD.
  std::string finish();

  // Whether an end was found; what follows it is dropped.
  bool isEnded() const { return isEnded_; }

 private:
  std::string take(size_t count);

  const Tokenizer& tokenizer_;
  std::vector<std::string> stops_;
  const std::vector<int32_t> shown_;
  std::string pending_;
  bool isFirst_ = true;
  bool isEnded_ = false;
};

}  // namespace hearth::llm
