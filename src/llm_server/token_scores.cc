// SPDX-License-Identifier: Apache-2.0
#include "llm_server/token_scores.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

namespace hearth::llm_server {

TokenScore scoreOf(std::span<const float> scores, int32_t chosen, size_t likely,
                   const llm::Tokenizer& tokenizer) {
  const float best = *std::ranges::max_element(scores);
  double sum = 0;
  for (const float score : scores) sum += std::exp(static_cast<double>(score - best));
  const auto offset = static_cast<float>(best + std::log(sum));
  const auto entry = [&](int32_t token) {
    TokenScore::Entry made{.logarithm = scores[static_cast<size_t>(token)] - offset};
    bool isFirst = false;
    tokenizer.appendBytes(token, &isFirst, &made.bytes);
    // A special token stands for no text.
    if (made.bytes.empty()) made.bytes = tokenizer.text(token);
    return made;
  };
  TokenScore score{.chosen = entry(chosen)};
  std::vector<int32_t> tokens(scores.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto end = tokens.begin() + static_cast<ptrdiff_t>(std::min(likely, tokens.size()));
  std::ranges::partial_sort(tokens, end, std::greater(), [&](int32_t token) {
    const float score = scores[static_cast<size_t>(token)];
    // What is no number has no place in an order.
    return std::isnan(score) ? -std::numeric_limits<float>::infinity() : score;
  });
  std::for_each(tokens.begin(), end, [&](int32_t token) { score.likely.push_back(entry(token)); });
  return score;
}

}  // namespace hearth::llm_server
