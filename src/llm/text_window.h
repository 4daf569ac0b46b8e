// SPDX-License-Identifier: Apache-2.0
// What stays of a text that outgrows the context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "llm/chat_prompt.h"
#include "llm/tokenizer.h"

namespace hearth::llm {

// The text without its oldest tokens after the first `keep`, which are fewer than the context: the
// others that stay fill half of what these leave of it. A text that is shorter stays as it is.
std::vector<int32_t> shortenedText(std::span<const int32_t> tokens, size_t context, size_t keep);

struct FittedPrompt {
  std::vector<int32_t> tokens;
  size_t dropped = 0;  // messages, behind those of the system at the beginning
};

// The prompt for an answer, as ChatPrompt::tokens(). Where that leaves no room in the context, the
// oldest messages are dropped, up to one of the user: as few as it takes so that the others fill at
// most half of what the system's leave, or all that are older than the user's last one. Errors:
// those of ChatPrompt::tokens().
Result<FittedPrompt> fittedPrompt(const ChatPrompt& prompt,
                                  const std::vector<ChatMessage>& messages, size_t context,
                                  SpecialTokens inMessages);

}  // namespace hearth::llm
