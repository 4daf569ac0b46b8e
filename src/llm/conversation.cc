// SPDX-License-Identifier: Apache-2.0
#include "llm/conversation.h"

#include <algorithm>
#include <string>
#include <utility>

#include "llm/chat_template.h"

namespace hearth::llm {
namespace {

constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool"};

Result<ChatMessage> messageOf(const TemplateValue& value, size_t number) {
  const DictionaryValue* const members = value.asDictionary();
  if (members == nullptr)
    return fail(ErrorCode::kBadData, "Message {} is {} and no object.", number, value.kindName());
  ChatMessage message;
  for (const auto& [name, member] : members->items) {
    const std::string* const text = member.asText();
    if (name == "role" && text != nullptr) {
      message.role = *text;
    } else if (name == "content" && text != nullptr) {
      message.content = *text;
    } else if (name == "content" && !member.isNone() && member.asList() == nullptr) {
      return fail(ErrorCode::kBadData,
                  "The content of message {} is {}; in JSON it is a text, a list or null.", number,
                  member.kindName());
    } else if (name == "tool_calls") {
      HEARTH_ASSIGN(TemplateValue calls, toolCallsForTemplate(member));
      message.members.emplace_back(name, std::move(calls));
    } else if (name != "role") {
      message.members.emplace_back(name, member);
    }
  }
  if (!std::ranges::contains(kRoles, message.role))
    return fail(ErrorCode::kBadData,
                "Message {} has the role '{}'; it may be system, developer, user, assistant or "
                "tool.",
                number, message.role);
  return message;
}

Status checkTools(const TemplateValue& tools) {
  if (tools.isNone()) return {};
  if (tools.asList() == nullptr)
    return fail(ErrorCode::kBadData, "The tools are {} and no list.", tools.kindName());
  return {};
}

// The same call, or function of a call, with arguments that are no text.
Result<TemplateValue> callForTemplate(const TemplateValue& call) {
  const DictionaryValue* const members = call.asDictionary();
  if (members == nullptr) return call;
  std::vector<std::pair<std::string, TemplateValue>> made;
  for (const auto& [name, member] : members->items) {
    TemplateValue value = member;
    if (name == "function") {
      HEARTH_ASSIGN(value, callForTemplate(member));
    } else if (name == "arguments" && member.asText() != nullptr) {
      // What is no JSON stays as the model has written it.
      const auto parsed = templateValueOfJson(*member.asText());
      if (parsed && parsed->asDictionary() != nullptr) value = *parsed;
    }
    made.emplace_back(name, std::move(value));
  }
  return TemplateValue::dictionary(std::move(made));
}

}  // namespace

Result<Conversation> Conversation::ofJson(std::string_view json) {
  HEARTH_ASSIGN(const TemplateValue all, templateValueOfJson(json));
  return of(all);
}

Result<Conversation> Conversation::of(const TemplateValue& all) {
  const TemplateValue* messages = &all;
  Conversation conversation;
  if (const DictionaryValue* const object = all.asDictionary()) {
    messages = object->find("messages");
    if (const TemplateValue* const tools = object->find("tools")) conversation.tools = *tools;
  }
  if (messages == nullptr || messages->asList() == nullptr)
    return fail(ErrorCode::kBadData, "The messages are no JSON array.");
  HEARTH_TRY(checkTools(conversation.tools));
  for (const TemplateValue& value : messages->asList()->items) {
    HEARTH_ASSIGN(ChatMessage message, messageOf(value, conversation.messages.size() + 1));
    conversation.messages.push_back(std::move(message));
  }
  return conversation;
}

Result<TemplateValue> Conversation::toValue() const {
  std::vector<TemplateValue> list;
  for (const ChatMessage& message : messages) {
    HEARTH_ASSIGN(TemplateValue value, messageForTemplate(message));
    list.push_back(std::move(value));
  }
  std::vector<std::pair<std::string, TemplateValue>> members;
  if (!tools.isNone()) members.emplace_back("tools", tools);
  HEARTH_ASSIGN(TemplateValue all, TemplateValue::list(std::move(list)));
  members.emplace_back("messages", std::move(all));
  return TemplateValue::dictionary(std::move(members));
}

size_t Conversation::systemMessages() const {
  const auto first = std::ranges::find_if(messages, [](const ChatMessage& message) {
    return message.role != "system" && message.role != "developer";
  });
  return static_cast<size_t>(first - messages.begin());
}

Result<TemplateValue> messageForTemplate(const ChatMessage& message) {
  std::vector<std::pair<std::string, TemplateValue>> members = {
      {"role", TemplateValue(message.role)}, {"content", TemplateValue(message.content)}};
  members.insert(members.end(), message.members.begin(), message.members.end());
  return TemplateValue::dictionary(std::move(members));
}

Result<TemplateValue> toolCallsForTemplate(const TemplateValue& calls) {
  if (calls.asList() == nullptr) return calls;
  std::vector<TemplateValue> made;
  for (const TemplateValue& call : calls.asList()->items) {
    HEARTH_ASSIGN(TemplateValue one, callForTemplate(call));
    made.push_back(std::move(one));
  }
  return TemplateValue::list(std::move(made));
}

Result<TemplateValue> toolsOfJson(std::string_view json) {
  HEARTH_ASSIGN(TemplateValue tools, templateValueOfJson(json));
  HEARTH_TRY(checkTools(tools));
  return tools;
}

}  // namespace hearth::llm
