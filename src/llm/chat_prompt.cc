// SPDX-License-Identifier: Apache-2.0
#include "llm/chat_prompt.h"

#include <algorithm>
#include <array>
#include <utility>

#include "llm/conversation.h"
#include "llm/utf8.h"

namespace hearth::llm {
namespace {

// Code points that Unicode keeps for a program's own use within itself: one that a conversation
// does not have is put into special tokens in messages, so that they are none.
constexpr uint32_t kFirstMark = 0xFDD0;
constexpr uint32_t kLastMark = 0xFDEF;

// Whether the text is in any text of a value.
bool contains(const TemplateValue& value, std::string_view text) {
  if (const std::string* const own = value.asText()) return own->contains(text);
  if (const ListValue* const list = value.asList())
    return std::ranges::any_of(list->items,
                               [&](const TemplateValue& item) { return contains(item, text); });
  if (const DictionaryValue* const dictionary = value.asDictionary())
    return std::ranges::any_of(dictionary->items, [&](const auto& item) {
      return item.first.contains(text) || contains(item.second, text);
    });
  return false;
}

// A mark that no message and no tool has; empty where they have all.
std::string freeMark(const std::vector<ChatMessage>& messages, const TemplateValue& tools) {
  for (uint32_t code = kFirstMark; code <= kLastMark; ++code) {
    std::string mark;
    appendCharacter(code, &mark);
    const bool isUsed = std::ranges::any_of(messages, [&](const ChatMessage& message) {
      return message.content.contains(mark) ||
             std::ranges::any_of(message.members,
                                 [&](const auto& member) { return contains(member.second, mark); });
    });
    if (!isUsed && !contains(tools, mark)) return mark;
  }
  return "";
}

// The text with the mark inside of each special token.
std::string marked(const Tokenizer& tokenizer, std::string_view text, std::string_view mark) {
  std::string made;
  size_t done = 0;
  while (const auto special = tokenizer.findSpecial(text, done)) {
    // Behind the first character; tokens that begin inside of this one are found, too.
    const size_t inside = special->first + decodeCharacter(text, special->first).size;
    made.append(text, done, inside - done);
    made += mark;
    done = inside;
  }
  made.append(text, done);
  return made;
}

// The value with the mark inside of each special token in its texts.
Result<TemplateValue> marked(const Tokenizer& tokenizer, const TemplateValue& value,
                             std::string_view mark) {
  if (const std::string* const text = value.asText())
    return TemplateValue(marked(tokenizer, std::string_view(*text), mark));
  if (const ListValue* const list = value.asList()) {
    std::vector<TemplateValue> items;
    for (const TemplateValue& item : list->items) {
      HEARTH_ASSIGN(TemplateValue made, marked(tokenizer, item, mark));
      items.push_back(std::move(made));
    }
    return TemplateValue::list(std::move(items));
  }
  if (const DictionaryValue* const dictionary = value.asDictionary()) {
    std::vector<std::pair<std::string, TemplateValue>> items;
    for (const auto& [key, item] : dictionary->items) {
      HEARTH_ASSIGN(TemplateValue made, marked(tokenizer, item, mark));
      items.emplace_back(marked(tokenizer, std::string_view(key), mark), std::move(made));
    }
    return TemplateValue::dictionary(std::move(items));
  }
  return value;
}

std::string without(std::string_view text, std::string_view mark) {
  std::string made;
  for (;;) {
    const size_t at = text.find(mark);
    made += text.substr(0, at);
    if (at == std::string_view::npos) return made;
    text.remove_prefix(at + mark.size());
  }
}

// What begins with the start itself, as a template may, does not get it twice.
void addStart(std::span<const int32_t> start, std::vector<int32_t>* tokens) {
  if (tokens->size() < start.size() || !std::equal(start.begin(), start.end(), tokens->begin()))
    tokens->insert(tokens->begin(), start.begin(), start.end());
}

}  // namespace

Result<std::vector<int32_t>> startTokens(const LlmMetadata& metadata, const Tokenizer& tokenizer) {
  if (!metadata.startToken) return std::vector<int32_t>();
  if (!metadata.startToken->ids.empty()) return metadata.startToken->ids;
  return tokenizer.encode(metadata.startToken->text, SpecialTokens::kAreParsed, false);
}

Result<std::vector<int32_t>> textTokens(std::span<const int32_t> start, const Tokenizer& tokenizer,
                                        std::string_view text, SpecialTokens special) {
  HEARTH_ASSIGN(std::vector<int32_t> tokens, tokenizer.encode(text, special));
  addStart(start, &tokens);
  return tokens;
}

Result<ChatPrompt> ChatPrompt::create(const LlmMetadata& metadata, const Tokenizer& tokenizer,
                                      std::string_view chatTemplate) {
  ChatPrompt prompt(tokenizer);
  const auto textOf = [&](const TokenSequence& sequence) {
    return sequence.ids.empty() ? sequence.text : tokenizer.decode(sequence.ids, true);
  };
  HEARTH_ASSIGN(prompt.startTokens_, llm::startTokens(metadata, tokenizer));
  if (metadata.startToken) prompt.startText_ = textOf(*metadata.startToken);
  if (!metadata.stopTokens.empty()) prompt.endText_ = textOf(metadata.stopTokens.front());
  if (chatTemplate.empty()) chatTemplate = metadata.chatTemplate;
  if (!chatTemplate.empty()) {
    HEARTH_ASSIGN(prompt.template_, ChatTemplate::parse(chatTemplate));
    prompt.toolFormat_ = toolFormatOf(chatTemplate);
    return prompt;
  }
  if (!metadata.user || !metadata.model)
    return fail(ErrorCode::kUnsupported,
                "The model has no chat template; --template names a file with one, and hearth "
                "complete needs none.");
  prompt.user_ = *metadata.user;
  prompt.model_ = *metadata.model;
  prompt.system_ = metadata.system.value_or(PromptAffixes());
  return prompt;
}

Result<ChatPrompt> ChatPrompt::withTools(TemplateValue tools) const {
  if (!template_)
    return fail(ErrorCode::kUnsupported,
                "The model has no chat template that could tell it of tools.");
  ChatPrompt prompt = *this;
  prompt.tools_ = std::move(tools);
  // Some templates put tools into the message of the system only.
  const std::array<std::vector<ChatMessage>, 2> conversations = {
      {{{"user", "0"}}, {{"system", "0"}, {"user", "0"}}}};
  bool isIgnored = false;
  bool isUsed = false;
  for (const auto& messages : conversations) {
    const auto without = render(messages, true);
    const auto with = prompt.render(messages, true);
    if (!without && !with) continue;
    (without && with && *without == *with ? isIgnored : isUsed) = true;
  }
  if (prompt.tools_.isTrue() && isIgnored && !isUsed)
    return fail(ErrorCode::kUnsupported,
                "The model's chat template does not look at tools, so the model would not learn of "
                "them.");
  return prompt;
}

std::string ChatPrompt::renderByAffixes(const std::vector<ChatMessage>& messages,
                                        bool isToAnswer) const {
  std::string text;
  for (const ChatMessage& message : messages) {
    const PromptAffixes& affixes = message.role == "user"     ? user_
                                   : message.role == "system" ? system_
                                                              : model_;
    text += affixes.prefix + message.content + affixes.suffix;
  }
  if (isToAnswer) text += model_.prefix;
  return text;
}

Result<std::string> ChatPrompt::render(const std::vector<ChatMessage>& messages,
                                       bool isToAnswer) const {
  for (const ChatMessage& message : messages)
    if (const size_t at = findInvalidUtf8(message.content); at != std::string_view::npos)
      return fail(ErrorCode::kBadData, "The message of the role {} is no UTF-8 at byte {}.",
                  message.role, at);
  if (!template_) {
    for (const ChatMessage& message : messages)
      if (message.role != "system" && message.role != "user" && message.role != "assistant")
        return fail(ErrorCode::kUnsupported,
                    "The model has no chat template, and so no messages of the role {}.",
                    message.role);
    return renderByAffixes(messages, isToAnswer);
  }
  std::vector<TemplateValue> list;
  for (const ChatMessage& message : messages) {
    HEARTH_ASSIGN(TemplateValue value, messageForTemplate(message));
    list.push_back(std::move(value));
  }
  HEARTH_ASSIGN(TemplateValue all, TemplateValue::list(std::move(list)));
  return template_->render({{"messages", std::move(all)},
                            {"add_generation_prompt", TemplateValue(isToAnswer)},
                            {"bos_token", TemplateValue(startText_)},
                            {"eos_token", TemplateValue(endText_)},
                            {"tools", tools_}});
}

Result<std::vector<int32_t>> ChatPrompt::tokens(const std::vector<ChatMessage>& messages,
                                                bool isToAnswer, SpecialTokens inMessages) const {
  std::vector<ChatMessage> safe = messages;
  ChatPrompt prompt = *this;
  std::string mark;
  if (inMessages == SpecialTokens::kAreText) {
    mark = freeMark(messages, tools_);
    if (mark.empty())
      return fail(ErrorCode::kBadData, "The messages have all characters from U+{:X} to U+{:X}.",
                  kFirstMark, kLastMark);
    for (ChatMessage& message : safe) {
      message.content = marked(*tokenizer_, std::string_view(message.content), mark);
      for (auto& [name, value] : message.members) {
        HEARTH_ASSIGN(value, marked(*tokenizer_, value, mark));
      }
    }
    HEARTH_ASSIGN(prompt.tools_, marked(*tokenizer_, tools_, mark));
  }
  HEARTH_ASSIGN(const std::string text, prompt.render(safe, isToAnswer));
  std::vector<int32_t> made;
  size_t done = 0;
  const auto addText = [&](size_t end) -> Status {
    const std::string_view part = std::string_view(text).substr(done, end - done);
    const std::string plain = mark.empty() ? std::string(part) : without(part, mark);
    const bool isFirst = made.empty() || made == startTokens_;
    HEARTH_ASSIGN(const std::vector<int32_t> tokens,
                  tokenizer_->encode(plain, SpecialTokens::kAreText, isFirst));
    made.insert(made.end(), tokens.begin(), tokens.end());
    return {};
  };
  if (mark.empty()) {
    HEARTH_ASSIGN(made, tokenizer_->encode(text, SpecialTokens::kAreParsed));
  } else {
    while (const auto special = tokenizer_->findSpecial(text, done)) {
      HEARTH_TRY(addText(special->first));
      HEARTH_ASSIGN(
          const std::vector<int32_t> tokens,
          tokenizer_->encode(std::string_view(text).substr(special->first, special->second),
                             SpecialTokens::kAreParsed, false));
      made.insert(made.end(), tokens.begin(), tokens.end());
      done = special->first + special->second;
    }
    HEARTH_TRY(addText(text.size()));
  }
  addStart(startTokens_, &made);
  return made;
}

size_t ChatPrompt::commonTokens(std::span<const int32_t> tokens, std::vector<ChatMessage> messages,
                                SpecialTokens inMessages) const {
  size_t common = tokens.size();
  // Two messages that begin unlike each other.
  for (const char* const text : {"0", "A"}) {
    messages.push_back({"user", text});
    const auto other = this->tokens(messages, true, inMessages);
    messages.pop_back();
    if (!other) return 0;
    const auto end = std::ranges::mismatch(tokens.first(common), *other).in1;
    common = static_cast<size_t>(end - tokens.begin());
  }
  return common;
}

}  // namespace hearth::llm
