// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "llm/tokenizer.h"

namespace hearth::llm_server {

// How probable a chosen token was, and which ones were most likely in its place.
struct TokenScore {
  struct Entry {
    std::string bytes;    // of the token, a part of a character perhaps
    float logarithm = 0;  // of its probability
  };
  Entry chosen;
  std::vector<Entry> likely;  // the most likely one first
};

// `scores`: of each token as the next one. The probabilities are those before sampling.
TokenScore scoreOf(std::span<const float> scores, int32_t chosen, size_t likely,
                   const llm::Tokenizer& tokenizer);

}  // namespace hearth::llm_server
