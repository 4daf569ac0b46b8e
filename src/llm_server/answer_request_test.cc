// SPDX-License-Identifier: Apache-2.0
#include "llm_server/answer_request.h"

#include <gtest/gtest.h>

#include <string>

namespace hearth::llm_server {
namespace {

// The request with these members beside one message.
ApiResult<AnswerRequest> chatWith(const std::string& members) {
  return readChatRequest(R"({"messages": [{"role": "user", "content": "a"}])" +
                         (members.empty() ? "" : ", " + members) + "}");
}

// The parameter that is refused; "-" where nothing is.
std::string refused(const ApiResult<AnswerRequest>& request) {
  if (request) return "-";
  EXPECT_EQ(request.error().status, 400);
  EXPECT_FALSE(request.error().message.empty());
  return request.error().param;
}

TEST(AnswerRequestTest, AChatHasMessagesAndOptions) {
  const auto request = readChatRequest(R"({
      "model": "m", "unknown": {"a": [1, null]}, "temperature": 0.5, "top_p": 0.25, "seed": -1,
      "messages": [{"role": "developer", "content": "a"}, {"role": "user", "name": "n",
                    "content": [{"type": "text", "text": "b\u00e9"}, {"type": "text", "text": "c"}]},
                   {"role": "assistant", "content": null}],
      "max_completion_tokens": 7, "stop": ["x", "y"], "stream": true, "user": null, "n": 1,
      "stream_options": {"include_usage": true}, "logprobs": true, "top_logprobs": 3,
      "tools": [], "response_format": {"type": "text"}, "presence_penalty": 0})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->model, "m");
  ASSERT_EQ(request->messages.size(), 3u);
  EXPECT_EQ(request->messages[0].role, "system");
  EXPECT_EQ(request->messages[1].content, "b\u00e9c");
  EXPECT_EQ(request->messages[2].content, "");
  EXPECT_EQ(request->maxTokens, 7u);
  EXPECT_EQ(request->stops, (std::vector<std::string>{"x", "y"}));
  EXPECT_TRUE(request->isStream && request->hasUsage);
  EXPECT_EQ(request->sampler.temperature, 0.5F);
  EXPECT_EQ(request->sampler.topP, 0.25F);
  EXPECT_EQ(request->sampler.seed, UINT64_MAX);
  EXPECT_EQ(request->logprobs, 3u);
}

TEST(AnswerRequestTest, ACompletionHasAPromptOfTextOrTokens) {
  const auto text = readCompletionRequest(R"({"prompt": "a", "stop": "x"})");
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(text->prompt, "a");
  EXPECT_EQ(text->maxTokens, 16u) << "as OpenAI's interface has it";
  EXPECT_FALSE(text->logprobs);
  const auto list = readCompletionRequest(R"({"prompt": ["a"], "logprobs": 2})");
  ASSERT_TRUE(list) << list.error().message;
  EXPECT_EQ(list->prompt, "a");
  EXPECT_EQ(list->logprobs, 2u);
  const auto tokens = readCompletionRequest(R"({"prompt": [1, 2]})");
  ASSERT_TRUE(tokens) << tokens.error().message;
  EXPECT_EQ(tokens->promptTokens, (std::vector<int32_t>{1, 2}));
  for (const char* const wrong :
       {R"({"prompt": ["a", "b"]})", R"({"prompt": [1, "a"]})", R"({"prompt": ["a", 1]})",
        R"({"prompt": [[1]]})", R"({"prompt": [1.5]})", R"({"prompt": []})", R"({"prompt": ""})",
        R"({"prompt": 1})", R"({})"})
    EXPECT_EQ(refused(readCompletionRequest(wrong)), "prompt") << wrong;
}

TEST(AnswerRequestTest, WhatTheServerLacksIsRefused) {
  EXPECT_EQ(refused(chatWith("")), "-");
  EXPECT_EQ(refused(chatWith(R"("n": 2)")), "n");
  EXPECT_EQ(refused(chatWith(R"("functions": [{}])")), "functions");
  EXPECT_EQ(refused(chatWith(R"("logit_bias": {"1": 2})")), "logit_bias");
  EXPECT_EQ(refused(chatWith(R"("response_format": {"type": "grammar"})")), "response_format");
  EXPECT_EQ(refused(readCompletionRequest(R"({"prompt": "a", "echo": true})")), "echo");
  EXPECT_EQ(refused(readCompletionRequest(R"({"prompt": "a", "suffix": "b"})")), "suffix");
}

TEST(AnswerRequestTest, ToolsAndTheirCallsAreRead) {
  const std::string tools = R"("tools": [{"type": "function", "function": {"name": "f"}},
                                         {"type": "function", "function": {"name": "g"}}])";
  const auto request = readChatRequest(R"({"messages": [
      {"role": "user", "content": "a"},
      {"role": "assistant", "content": null, "tool_calls": [
          {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}}]},
      {"role": "tool", "tool_call_id": "c", "content": "b"}],
      "parallel_tool_calls": false, )" +
                                       tools + "}");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->toolNames, (std::vector<std::string>{"f", "g"}));
  EXPECT_EQ(request->toolChoice, ToolChoice::kAuto);
  EXPECT_FALSE(request->hasManyCalls);
  ASSERT_EQ(request->messages[1].members.size(), 1u);
  EXPECT_EQ(llm::printed(request->messages[1].members[0].second, 1000),
            "[{'id': 'c', 'type': 'function', 'function': {'name': 'f', 'arguments': {'x': 1}}}]")
      << "templates print the arguments themselves";
  EXPECT_EQ(*request->messages[2].members[0].second.asText(), "c");

  EXPECT_EQ(chatWith(tools + R"(, "tool_choice": "none")")->toolChoice, ToolChoice::kNone);
  EXPECT_EQ(chatWith(tools + R"(, "tool_choice": "required")")->toolChoice, ToolChoice::kRequired);
  const auto one =
      chatWith(tools + R"(, "tool_choice": {"type": "function", "function": {"name": "g"}})");
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->requiredTool, "g");
  EXPECT_EQ(refused(chatWith(R"("tool_choice": "required")")), "tool_choice");
  for (const char* const wrong : {R"("any")", "1", "{}", R"({"function": {"name": "h"}})"})
    EXPECT_EQ(refused(chatWith(tools + R"(, "tool_choice": )" + wrong)), "tool_choice") << wrong;
  for (const char* const wrong : {"1", "[1]", "[{}]", R"([{"function": {}}])"})
    EXPECT_EQ(refused(chatWith(std::string(R"("tools": )") + wrong)), "tools") << wrong;
  EXPECT_EQ(refused(chatWith(tools + R"(, "tool_choice": "required",
                                        "response_format": {"type": "json_object"})")),
            "tool_choice");
}

TEST(AnswerRequestTest, AFormatIsJsonOfASchema) {
  EXPECT_EQ(chatWith(R"("response_format": {"type": "text"})")->format, nullptr);
  EXPECT_NE(chatWith(R"("response_format": {"type": "json_object"})")->format, nullptr);
  const auto request = chatWith(R"("response_format": {"type": "json_schema", "json_schema": {
      "name": "n", "strict": true, "schema": {"type": "array", "items": {"type": "integer"}}}})");
  ASSERT_TRUE(request) << request.error().message;
  const llm::JsonSchema& schema = *request->format;
  const uint32_t root = schema.node(schema.root()).choices.front();
  EXPECT_EQ(schema.node(root).kind, llm::JsonSchema::Kind::kArray);
  const auto unknown = chatWith(R"("response_format": {"type": "json_schema", "json_schema": {
      "name": "n", "schema": {"type": "array", "uniqueItems": true}}})");
  EXPECT_EQ(refused(unknown), "response_format");
  EXPECT_NE(unknown.error().message.find("'uniqueItems'"), std::string::npos);
  for (const char* const wrong : {R"({"type": "json_schema"})", R"([])", R"({})",
                                  R"({"type": "json_schema", "json_schema": []})",
                                  R"({"type": "json_schema", "json_schema": {"schema": 1}})"})
    EXPECT_EQ(refused(chatWith(std::string(R"("response_format": )") + wrong)), "response_format")
        << wrong;
}

TEST(AnswerRequestTest, ValuesOutsideTheirRangesAreRefused) {
  EXPECT_EQ(refused(chatWith(R"("max_tokens": 0)")), "max_tokens");
  EXPECT_EQ(refused(chatWith(R"("max_tokens": 1e99)")), "max_tokens");
  EXPECT_EQ(refused(chatWith(R"("max_tokens": "1")")), "max_tokens");
  EXPECT_EQ(refused(chatWith(R"("temperature": -1)")), "temperature");
  EXPECT_EQ(refused(chatWith(R"("top_p": 1.5)")), "top_p");
  EXPECT_EQ(refused(chatWith(R"("presence_penalty": 2.5)")), "presence_penalty");
  EXPECT_EQ(refused(chatWith(R"("frequency_penalty": -2.5)")), "frequency_penalty");
  EXPECT_EQ(refused(chatWith(R"("repetition_penalty": 0)")), "repetition_penalty");
  EXPECT_EQ(refused(chatWith(R"("stop": "")")), "stop");
  EXPECT_EQ(refused(chatWith(R"("stop": [1])")), "stop");
  EXPECT_EQ(refused(chatWith(R"("stream": 1)")), "stream");
  EXPECT_EQ(refused(chatWith(R"("top_logprobs": 2)")), "top_logprobs");
  EXPECT_EQ(refused(chatWith(R"("logprobs": true, "top_logprobs": 21)")), "top_logprobs");
  EXPECT_EQ(refused(chatWith(R"("model": 1)")), "model");
}

TEST(AnswerRequestTest, TheEndsOfTheirRangesAreTaken) {
  for (const char* const option :
       {R"("max_tokens": 1)", R"("temperature": 0)", R"("top_p": 0)", R"("top_p": 1)",
        R"("min_p": 0)", R"("presence_penalty": -2)", R"("presence_penalty": 2)", R"("top_k": 0)",
        R"("logprobs": true, "top_logprobs": 20)"}) {
    const auto request = chatWith(option);
    EXPECT_TRUE(request) << request.error().message;
  }
}

TEST(AnswerRequestTest, MessagesThatAreNoneAreRefused) {
  const auto withMessages = [](const std::string& messages) {
    return refused(readChatRequest(R"({"messages": )" + messages + "}"));
  };
  EXPECT_EQ(withMessages("[]"), "messages");
  EXPECT_EQ(withMessages("{}"), "messages");
  EXPECT_EQ(withMessages(R"(["a"])"), "messages");
  EXPECT_EQ(withMessages(R"([{"role": "function", "content": "a"}])"), "messages");
  EXPECT_EQ(withMessages(R"([{"content": "a"}])"), "messages");
  EXPECT_EQ(withMessages(R"([{"role": "user", "content": 1}])"), "messages");
  EXPECT_EQ(withMessages(R"([{"role": "user", "content": [{"type": "image_url"}]}])"), "messages");
  EXPECT_EQ(withMessages(R"([{"role": "assistant", "tool_calls": [{}]}])"), "messages");
}

TEST(AnswerRequestTest, TextThatIsNoJsonIsRefused) {
  for (const std::string& wrong :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"),
        std::string(R"({"messages": [{"role": "user", "content": "a"}]} x)"),
        std::string("{\"messages\": [{\"role\": \"user\", \"content\": \"\xFF\"}]}"),
        R"({"a": )" + std::string(100'000, '[') + "}"}) {
    const auto request = readChatRequest(wrong);
    ASSERT_FALSE(request) << wrong.substr(0, 100);
    EXPECT_TRUE(request.error().message.starts_with("The body of the request: "))
        << request.error().message;
  }
}

}  // namespace
}  // namespace hearth::llm_server
