// SPDX-License-Identifier: Apache-2.0
#include "llm/text_window.h"

#include <algorithm>
#include <utility>

namespace hearth::llm {
namespace {

// How many tokens stay, of which the first `keep` do in any case.
size_t windowOf(size_t context, size_t keep) {
  return keep + (context - std::min(context, keep)) / 2;
}

}  // namespace

std::vector<int32_t> shortenedText(std::span<const int32_t> tokens, size_t context, size_t keep) {
  const size_t left = windowOf(context, keep);
  if (tokens.size() <= left) return {tokens.begin(), tokens.end()};
  std::vector<int32_t> text(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(keep));
  text.insert(text.end(), tokens.end() - static_cast<ptrdiff_t>(left - keep), tokens.end());
  return text;
}

Result<FittedPrompt> fittedPrompt(const ChatPrompt& prompt,
                                  const std::vector<ChatMessage>& messages, size_t context,
                                  SpecialTokens inMessages) {
  FittedPrompt fitted;
  HEARTH_ASSIGN(fitted.tokens, prompt.tokens(messages, true, inMessages));
  if (fitted.tokens.size() < context) return fitted;
  const auto first = std::ranges::find_if(messages, [](const ChatMessage& message) {
    return message.role != "system" && message.role != "developer";
  });
  const std::vector<ChatMessage> system(messages.begin(), first);
  std::vector<size_t> begins;  // messages of the user that may be the oldest one
  for (size_t i = system.size() + 1; i < messages.size(); ++i)
    if (messages[i].role == "user") begins.push_back(i);
  const size_t most = windowOf(context, prompt.commonTokens(fitted.tokens, system, inMessages));
  const auto from = [&](size_t begin) -> Result<FittedPrompt> {
    std::vector<ChatMessage> rest = system;
    rest.insert(rest.end(), messages.begin() + static_cast<ptrdiff_t>(begin), messages.end());
    FittedPrompt shorter{.tokens = {}, .dropped = begin - system.size()};
    HEARTH_ASSIGN(shorter.tokens, prompt.tokens(rest, true, inMessages));
    return shorter;
  };
  // There may be many messages, so not each of them is tried.
  size_t low = 0;
  size_t high = begins.size();
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    HEARTH_ASSIGN(FittedPrompt shorter, from(begins[middle]));
    const bool fits = shorter.tokens.size() <= most;
    if (fits || middle + 1 == begins.size()) fitted = std::move(shorter);
    if (fits)
      high = middle;
    else
      low = middle + 1;
  }
  return fitted;
}

}  // namespace hearth::llm
