// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace hearth::llm {

// A `tokenizer.json` of bytes as GPT-2's: the letters a to z, a space, the words "he", "ll",
// "hell", "hello" and " hello", and the special tokens <|start|> and <|end|>.
std::string smallTokenizerJson();

// The numbers of its tokens.
struct SmallTokens {
  static constexpr int kStart = 0;
  static constexpr int kEnd = 1;
  static constexpr int kSpace = 2;
  static constexpr int kA = 3;  // b and the others follow
  static constexpr int kHello = 32;
  static constexpr int kSpaceHello = 33;
};

}  // namespace hearth::llm
