// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "llm/llm_metadata.h"
#include "llm/tokenizer.h"

namespace hearth::llm {

// Where an answer ends: at sequences of tokens, and at texts.
struct StopRules {
  std::vector<std::vector<int32_t>> sequences;
  std::vector<std::string> texts;

  // Those of a model. A text with special tokens in it is a sequence of tokens.
  static Result<StopRules> ofModel(const LlmMetadata& metadata, const Tokenizer& tokenizer);

  // How many tokens at the end are a sequence that ends the answer; 0 = none.
  size_t endOf(std::span<const int32_t> answer) const;
};

}  // namespace hearth::llm
