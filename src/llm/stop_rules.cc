// SPDX-License-Identifier: Apache-2.0
#include "llm/stop_rules.h"

#include <algorithm>
#include <utility>

namespace hearth::llm {

Result<StopRules> StopRules::ofModel(const LlmMetadata& metadata, const Tokenizer& tokenizer) {
  StopRules rules;
  for (const TokenSequence& stop : metadata.stopTokens) {
    if (!stop.ids.empty()) {
      rules.sequences.push_back(stop.ids);
      continue;
    }
    HEARTH_ASSIGN(std::vector<int32_t> tokens,
                  tokenizer.encode(stop.text, SpecialTokens::kAreParsed, false));
    const bool hasSpecial =
        std::ranges::any_of(tokens, [&](int32_t token) { return tokenizer.isSpecial(token); });
    if (hasSpecial)
      rules.sequences.push_back(std::move(tokens));
    else if (!stop.text.empty())
      rules.texts.push_back(stop.text);
  }
  return rules;
}

size_t StopRules::endOf(std::span<const int32_t> answer) const {
  size_t longest = 0;
  for (const std::vector<int32_t>& sequence : sequences)
    if (!sequence.empty() && sequence.size() > longest && sequence.size() <= answer.size() &&
        std::ranges::equal(sequence, answer.last(sequence.size())))
      longest = sequence.size();
  return longest;
}

}  // namespace hearth::llm
