// SPDX-License-Identifier: Apache-2.0
#include "llm/saved_conversation.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "llm/chat_template.h"

namespace hearth::llm {
namespace {

constexpr int64_t kVersion = 1;

// The text of a member; empty where it is missing or no text.
std::string textOf(const DictionaryValue& members, std::string_view name) {
  const TemplateValue* const member = members.find(name);
  const std::string* const text = member != nullptr ? member->asText() : nullptr;
  return text != nullptr ? *text : "";
}

}  // namespace

Result<std::string> SavedConversation::toJson() const {
  HEARTH_ASSIGN(TemplateValue model,
                TemplateValue::dictionary({{"name", modelName}, {"sha256", modelContent}}));
  std::vector<std::pair<std::string, TemplateValue>> members = {
      {"version", TemplateValue(kVersion)}, {"model", std::move(model)}};
  HEARTH_ASSIGN(const TemplateValue said, conversation.toValue());
  const DictionaryValue& all = *said.asDictionary();
  members.insert(members.end(), all.items.begin(), all.items.end());
  HEARTH_ASSIGN(const TemplateValue value, TemplateValue::dictionary(std::move(members)));
  auto json = hearth::llm::toJson(value, {.indent = 1}, kMaxBytes - 1);
  if (!json)
    return fail(ErrorCode::kBadData, "It cannot be written as JSON of at most {} bytes.",
                kMaxBytes);
  *json += '\n';
  return json;
}

Result<SavedConversation> SavedConversation::ofJson(std::string_view json) {
  if (json.size() > kMaxBytes)
    return fail(ErrorCode::kBadData, "It has {} bytes; at most {} are read.", json.size(),
                kMaxBytes);
  HEARTH_ASSIGN(const TemplateValue value, templateValueOfJson(json));
  const DictionaryValue* const members = value.asDictionary();
  if (members == nullptr)
    return fail(ErrorCode::kBadData, "It is {} and no object.", value.kindName());
  const TemplateValue* const version = members->find("version");
  if (version == nullptr || version->asInteger() == nullptr)
    return fail(ErrorCode::kBadData, "It does not say its version.");
  if (*version->asInteger() != kVersion)
    return fail(ErrorCode::kUnsupported, "It has version {}; {} is known.", *version->asInteger(),
                kVersion);
  SavedConversation saved;
  if (const TemplateValue* const model = members->find("model")) {
    const DictionaryValue* const named = model->asDictionary();
    if (named == nullptr)
      return fail(ErrorCode::kBadData, "Its model is {} and no object.", model->kindName());
    saved.modelName = textOf(*named, "name");
    saved.modelContent = textOf(*named, "sha256");
  }
  HEARTH_ASSIGN(saved.conversation, Conversation::of(value));
  return saved;
}

bool SavedConversation::isOf(std::string_view name, std::string_view content) const {
  return modelContent.empty() || content.empty() ? modelName == name : modelContent == content;
}

}  // namespace hearth::llm
