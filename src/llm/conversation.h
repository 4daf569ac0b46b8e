// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "llm/chat_prompt.h"
#include "llm/template_value.h"

namespace hearth::llm {

// What is said, and the tools that the model may call.
struct Conversation {
  std::vector<ChatMessage> messages;
  TemplateValue tools;  // a list; None = none

  // Reads a JSON array of messages, or an object with the members `messages` and `tools`, as
  // OpenAI's interface has them. A message is an object with a `role` (system, developer, user,
  // assistant or tool), a `content` that is a text, a list or null, and any other members. Other
  // members of the object are skipped. Error: kBadData.
  static Result<Conversation> ofJson(std::string_view json);
};

// Reads the JSON of a list of tools. Error: kBadData.
Result<TemplateValue> toolsOfJson(std::string_view json);

}  // namespace hearth::llm
