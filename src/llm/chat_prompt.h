// SPDX-License-Identifier: Apache-2.0
// The text of a conversation as a model was trained on it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "llm/chat_template.h"
#include "llm/llm_metadata.h"
#include "llm/template_value.h"
#include "llm/tokenizer.h"
#include "llm/tool_calls.h"

namespace hearth::llm {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant", "tool" or what else a template knows
  std::string content;
  // What a template sees besides, such as `tool_calls`, `name` and `tool_call_id`. A `content` here
  // stands in place of the text, which is empty then.
  std::vector<std::pair<std::string, TemplateValue>> members = {};
};

// The tokens that stand before a text; none where the model has none.
Result<std::vector<int32_t>> startTokens(const LlmMetadata& metadata, const Tokenizer& tokenizer);

// The tokens of a text with `start` in front, which a text that begins with it itself does not get
// twice. Errors: those of Tokenizer::encode().
Result<std::vector<int32_t>> textTokens(std::span<const int32_t> start, const Tokenizer& tokenizer,
                                        std::string_view text, SpecialTokens special);

// Makes the tokens of a conversation, by a Jinja template or, where a model has none, by what its
// metadata puts before and behind each message. The tokenizer must outlive it. Immutable;
// thread-safe.
class ChatPrompt {
 public:
  // `chatTemplate`: in place of the model's, empty = the model's. Errors: kUnsupported where there
  // is neither, and those of ChatTemplate::parse.
  static Result<ChatPrompt> create(const LlmMetadata& metadata, const Tokenizer& tokenizer,
                                   std::string_view chatTemplate);

  // The same with tools that the model may call, for the template's variable `tools`: a list of
  // what OpenAI's interface has for it. Error: kUnsupported where the model has no template, or one
  // that does not look at tools.
  Result<ChatPrompt> withTools(TemplateValue tools) const;

  // How the model writes calls of tools; null where that is not known.
  const ToolFormat* toolFormat() const { return toolFormat_; }

  // The text; `isToAnswer`: with what stands before an answer. Errors: those of
  // ChatTemplate::render; kBadData for text that is no UTF-8; kUnsupported for messages of other
  // roles than system, user and assistant where the model has no template.
  Result<std::string> render(const std::vector<ChatMessage>& messages, bool isToAnswer) const;

  // The tokens of that text, which begin with the model's start. Special tokens that are written in
  // a message, or in a tool's description, are only parsed on request; those of the template are in
  // any case.
  Result<std::vector<int32_t>> tokens(const std::vector<ChatMessage>& messages, bool isToAnswer,
                                      SpecialTokens inMessages) const;

  // How many of these tokens every conversation begins with that begins with these messages,
  // whatever the user says next; 0 where the template does not take them.
  size_t commonTokens(std::span<const int32_t> tokens, std::vector<ChatMessage> messages,
                      SpecialTokens inMessages) const;

 private:
  explicit ChatPrompt(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}
  std::string renderByAffixes(const std::vector<ChatMessage>& messages, bool isToAnswer) const;

  const Tokenizer* tokenizer_;
  std::optional<ChatTemplate> template_;
  TemplateValue tools_;  // None = none
  const ToolFormat* toolFormat_ = nullptr;
  PromptAffixes user_;
  PromptAffixes model_;
  PromptAffixes system_;
  std::vector<int32_t> startTokens_;
  std::string startText_;  // and that of the first token that ends an answer
  std::string endText_;
};

}  // namespace hearth::llm
