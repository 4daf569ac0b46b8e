// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
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
  // assistant or tool), a `content` that is a text, a list or null, and any other members; the
  // arguments of its `tool_calls` are an object or the JSON text of one. Other members of the
  // object are skipped. Error: kBadData.
  static Result<Conversation> ofJson(std::string_view json);
  // The same of JSON that was read.
  static Result<Conversation> of(const TemplateValue& value);

  // An object with the members `messages` and, where there are any, `tools`, of which of() makes
  // the same conversation. Error: kBadData for values that nest too deeply.
  Result<TemplateValue> toValue() const;

  // How many messages at its beginning are the system's.
  size_t systemMessages() const;
};

// A message as templates see it. Error: kBadData for members that nest too deeply.
Result<TemplateValue> messageForTemplate(const ChatMessage& message);

// What a template gets as `tool_calls` of a message: OpenAI's interface has the arguments of a call
// as a JSON text, templates as the value. Error: kBadData for values that nest too deeply.
Result<TemplateValue> toolCallsForTemplate(const TemplateValue& calls);

// Reads the JSON of a list of tools. Error: kBadData.
Result<TemplateValue> toolsOfJson(std::string_view json);

}  // namespace hearth::llm
