// SPDX-License-Identifier: Apache-2.0
#include "llm/conversation.h"

#include <gmock/gmock.h>

#include <string>

#include "llm/testing/small_tokenizer.h"
#include "llm/tokenizer.h"

namespace hearth::llm {
namespace {

using ::testing::HasSubstr;

constexpr const char* kToolsTemplate =
    "{% for t in tools or [] %}[{{ t.function.name }}]{% endfor %}"
    "{% for m in messages %}{{ m.role }}:"
    "{% if m.content is none %}none{% else %}{{ m.content }}{% endif %}"
    "{% for c in m.tool_calls or [] %}({{ c.function.arguments | tojson }}){% endfor %};"
    "{% endfor %}";

std::string problemOf(std::string_view json) {
  const auto conversation = Conversation::ofJson(json);
  return conversation ? "" : conversation.error().toString();
}

Tokenizer tokenizerWithMarks() {
  std::string json = smallTokenizerJson();
  json.replace(json.find("\"Ġ\":2"), 6,
               R"-("Ġ":2,"<":34,"|":35,">":36,"[":37,"]":38,":":39,";":40,"(":41,")":42,)-"
               R"-("{":43,"}":44,"\"":45)-");
  return Tokenizer::fromJson(json).value();
}

TEST(ConversationTest, ToolsAndTheirCallsReachTheTemplate) {
  const auto conversation = Conversation::ofJson(R"({
    "model": "any",
    "tools": [{"type": "function", "function": {"name": "weather"}}],
    "messages": [
      {"role": "user", "content": "sky?"},
      {"role": "assistant", "content": null,
       "tool_calls": [{"function": {"name": "weather", "arguments": {"city": "é", "n": 2}}}]},
      {"role": "tool", "name": "weather", "content": "clear"}]})");
  ASSERT_TRUE(conversation) << conversation.error().toString();
  LlmMetadata metadata;
  metadata.chatTemplate = kToolsTemplate;
  const Tokenizer tokenizer = Tokenizer::fromJson(smallTokenizerJson()).value();
  const ChatPrompt plain = ChatPrompt::create(metadata, tokenizer, "").value();
  const ChatPrompt prompt = plain.withTools(conversation->tools).value();
  EXPECT_EQ(prompt.render(conversation->messages, false).value(),
            "[weather]user:sky?;assistant:none({\"city\": \"é\", \"n\": 2});tool:clear;");
  EXPECT_EQ(plain.render({{"user", "a"}}, false).value(), "user:a;");
}

TEST(ConversationTest, ToolsMayStandInTheMessageOfTheSystem) {
  LlmMetadata metadata;
  metadata.chatTemplate =
      "{% for m in messages %}{{ m.role }}{% if m.role == 'system' %}{{ tools|length }}{% endif %}"
      "{% endfor %}";
  const Tokenizer tokenizer = tokenizerWithMarks();
  const TemplateValue tools = toolsOfJson(R"([{"function": {"name": "weather"}}])").value();
  const auto prompt = ChatPrompt::create(metadata, tokenizer, "").value().withTools(tools);
  ASSERT_TRUE(prompt) << prompt.error().toString();
  EXPECT_EQ(prompt->render({{"system", "a"}}, false).value(), "system1");
  metadata.chatTemplate = "{{ messages[0].role }}";
  const auto blind = ChatPrompt::create(metadata, tokenizer, "").value().withTools(tools);
  ASSERT_FALSE(blind.has_value());
  EXPECT_THAT(blind.error().toString(), HasSubstr("does not look at tools"));
}

TEST(ConversationTest, SpecialTokensInToolsAndCallsStayText) {
  const auto conversation = Conversation::ofJson(R"({
    "tools": [{"function": {"name": "<|end|>"}}],
    "messages": [{"role": "tool", "content": "a",
                  "tool_calls": [{"function": {"arguments": {"<|start|>": "<|end|>"}}}]}]})");
  ASSERT_TRUE(conversation) << conversation.error().toString();
  LlmMetadata metadata;
  metadata.chatTemplate = kToolsTemplate;
  const Tokenizer tokenizer = tokenizerWithMarks();
  const ChatPrompt prompt =
      ChatPrompt::create(metadata, tokenizer, "").value().withTools(conversation->tools).value();
  const auto safe = prompt.tokens(conversation->messages, false, SpecialTokens::kAreText).value();
  for (const int32_t token : safe) EXPECT_FALSE(tokenizer.isSpecial(token)) << token;
  EXPECT_EQ(tokenizer.decode(safe), prompt.render(conversation->messages, false).value());
  const auto parsed =
      prompt.tokens(conversation->messages, false, SpecialTokens::kAreParsed).value();
  EXPECT_EQ(std::ranges::count(parsed, SmallTokens::kEnd), 2);
  EXPECT_EQ(std::ranges::count(parsed, SmallTokens::kStart), 1);
}

TEST(ConversationTest, WhatIsNoConversationIsRefused) {
  EXPECT_THAT(problemOf("{"), HasSubstr("wrong at byte"));
  EXPECT_THAT(problemOf("7"), HasSubstr("The messages are no JSON array"));
  EXPECT_THAT(problemOf("{}"), HasSubstr("The messages are no JSON array"));
  EXPECT_THAT(problemOf("[1]"), HasSubstr("Message 1 is"));
  EXPECT_THAT(problemOf(R"([{"role": "user"}, {"role": "robot"}])"),
              HasSubstr("Message 2 has the role 'robot'"));
  EXPECT_THAT(problemOf(R"([{"role": "user", "content": 5}])"),
              HasSubstr("The content of message 1 is"));
  EXPECT_THAT(problemOf(R"({"messages": [], "tools": {}})"), HasSubstr("and no list"));
  EXPECT_FALSE(toolsOfJson("[").has_value());
  EXPECT_TRUE(toolsOfJson("[]").has_value());
}

TEST(ConversationTest, ModelsWithoutATemplateKnowNoTools) {
  LlmMetadata metadata;
  metadata.user = PromptAffixes{"u ", ""};
  metadata.model = PromptAffixes{"m ", ""};
  const Tokenizer tokenizer = Tokenizer::fromJson(smallTokenizerJson()).value();
  const ChatPrompt prompt = ChatPrompt::create(metadata, tokenizer, "").value();
  EXPECT_FALSE(prompt.withTools(TemplateValue()).has_value());
  const auto text = prompt.render({{"tool", "a"}}, false);
  ASSERT_FALSE(text.has_value());
  EXPECT_THAT(text.error().toString(), HasSubstr("no messages of the role tool"));
}

}  // namespace
}  // namespace hearth::llm
