// SPDX-License-Identifier: Apache-2.0
#include "llm/tool_calls.h"

#include <gmock/gmock.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "llm/chat_template.h"
#include "llm/json_automaton.h"

namespace hearth::llm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHermes = R"(write <tool_call>{"name": .., "arguments": ..}</tool_call>)";
constexpr const char* kMistral = R"([TOOL_CALLS] [{"name": .., "arguments": ..}])";
constexpr const char* kLlama = R"(<|start_header_id|> {"name": .., "parameters": ..})";

// What a reader of a template's format finds: the text, and each call in brackets. Fed with pieces
// of `size` bytes.
std::string found(const char* chatTemplate, std::string_view answer, size_t size,
                  bool isInside = false) {
  ToolCallReader reader(*toolFormatOf(chatTemplate), {"weather", "time"}, isInside);
  std::string text;
  std::string calls;
  const auto take = [&](const ToolCallReader::Piece& piece) {
    text += piece.text;
    for (const ToolCall& call : piece.calls) calls += "[" + call.name + call.arguments + "]";
  };
  for (size_t i = 0; i < answer.size(); i += size) take(reader.add(answer.substr(i, size)));
  take(reader.finish());
  return text + calls;
}

void expectFound(const char* chatTemplate, std::string_view answer, const std::string& expected,
                 bool isInside = false) {
  for (const size_t size : {size_t{1}, size_t{3}, answer.size()})
    EXPECT_EQ(found(chatTemplate, answer, size, isInside), expected) << size;
}

TEST(ToolCallsTest, CallsBetweenMarksAreFound) {
  expectFound(
      kHermes,
      "Let me see.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\"}}\n"
      "</tool_call>\n<tool_call>{\"name\":\"time\",\"arguments\":\"{}\"}</tool_call>\n",
      "Let me see.[weather{\"city\": \"Bern\"}][time{}]");
  expectFound(kHermes,
              R"(<tool_call>[{"name":"time","arguments":{}},{"name":"weather","arguments":{}}])"
              "</tool_call>",
              "[time{}][weather{}]");
  // The mark behind it may be what ends the answer.
  expectFound(kHermes, R"(<tool_call>{"name":"time","arguments":{}})", "[time{}]");
  expectFound(kHermes, R"({"name":"time","arguments":{"a": [1, null]}})",
              "[time{\"a\": [1, null]}]", true);
}

TEST(ToolCallsTest, WhatIsNoCallForCertainStaysText) {
  for (const char* const text :
       {"a < b <tool", "<tool_call>\n{\"name\": \"other\", \"arguments\": {}}\n</tool_call> x",
        "<tool_call>{\"name\": \"time\"}</tool_call>", "<tool_call>time()</tool_call>",
        "<tool_call>{\"name\": \"time\", \"arguments\": 1}</tool_call>", "  {\"name\": \"time\"} ",
        "<tool_call>[{\"name\": \"time\", \"arguments\": {}}, 1]</tool_call>", "<tool_call>{"})
    expectFound(kHermes, text, text);
}

TEST(ToolCallsTest, OtherFamiliesHaveOtherForms) {
  expectFound(kMistral, R"([TOOL_CALLS] [{"name":"time","arguments":{}}])", "[time{}]");
  expectFound(kMistral, "[TOOL", "[TOOL");
  expectFound(kLlama, R"( {"name":"time","parameters":{"a":1}})", "[time{\"a\": 1}]");
  expectFound(kLlama, R"({"name":"time","parameters":{},"more":1})",
              R"({"name":"time","parameters":{},"more":1})");
  expectFound(kLlama, R"(It is {"name":"time","parameters":{}})",
              R"(It is {"name":"time","parameters":{}})");
  EXPECT_EQ(toolFormatOf("{{ messages }}"), nullptr);
  EXPECT_EQ(toolFormatOf("<tool_call><function=f>arguments"), nullptr);
}

TEST(ToolCallsTest, TheSchemaOfACallIsThatOfItsTool) {
  const TemplateValue tools = templateValueOfJson(R"([
      {"type": "function", "function": {"name": "weather", "parameters": {"type": "object",
          "properties": {"at": {"$ref": "#/$defs/place"}}, "required": ["at"],
          "$defs": {"place": {"enum": ["Bern", "Rome"]}}}}},
      {"type": "function", "function": {"name": "time"}}])")
                                  .value();
  const auto has = [&](const char* chatTemplate, std::string_view name, std::string_view text) {
    const auto schema = schemaOfCall(*toolFormatOf(chatTemplate), tools, name);
    EXPECT_TRUE(schema) << schema.error().toString();
    auto parsed = JsonSchema::parse(*schema);
    EXPECT_TRUE(parsed) << *schema << ": " << parsed.error().toString();
    JsonAutomaton automaton(std::make_shared<const JsonSchema>(*std::move(parsed)));
    JsonAutomaton::State state = automaton.begin();
    for (const char c : text) state = automaton.next(state, static_cast<uint8_t>(c));
    return automaton.mustEnd(state);
  };
  EXPECT_TRUE(has(kHermes, "", R"({"name": "weather", "arguments": {"at": "Bern"}})"));
  EXPECT_TRUE(has(kHermes, "", R"({"name": "time", "arguments": {"x": 1}})"));
  EXPECT_FALSE(has(kHermes, "", R"({"name": "weather", "arguments": {"at": "Oslo"}})"));
  EXPECT_FALSE(has(kHermes, "weather", R"({"name": "time", "arguments": {}})"));
  EXPECT_TRUE(has(kMistral, "weather", R"([{"name": "weather", "arguments": {"at": "Rome"}}])"));
  EXPECT_TRUE(has(kLlama, "time", R"({"name": "time", "parameters": {}})"));
  const auto other = schemaOfCall(*toolFormatOf(kHermes), tools, "other");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message(), HasSubstr("no tool 'other'"));
}

TEST(ToolCallsTest, ReferencesMoveAndValuesDoNot) {
  const TemplateValue tools = templateValueOfJson(R"([
      {"function": {"name": "f", "parameters": {"type": "object",
          "properties": {"const": {"$ref": "#/$defs/enum"}, "b": {"enum": [{"$ref": "#/c"}]}},
          "required": ["const", "b"], "$defs": {"enum": {"const": {"$ref": "#/d"}}}}}}])")
                                  .value();
  const auto schema = schemaOfCall(*toolFormatOf(kHermes), tools, "");
  ASSERT_TRUE(schema) << schema.error().toString();
  const std::string text = nlohmann::json::parse(*schema).dump();
  EXPECT_THAT(text, HasSubstr(R"("b":{"enum":[{"$ref":"#/c"}]})"));
  EXPECT_THAT(text, HasSubstr(R"("enum":{"const":{"$ref":"#/d"}})"));
  EXPECT_THAT(text, HasSubstr(R"("const":{"$ref":"#/)"));
  EXPECT_THAT(text, Not(HasSubstr(R"("const":{"$ref":"#/$defs/enum"})")));
  EXPECT_TRUE(JsonSchema::parse(*schema)) << *schema;
}

TEST(ToolCallsTest, ToolsHaveNames) {
  EXPECT_TRUE(toolNames(TemplateValue()).value().empty());
  for (const char* const wrong :
       {"{}", "1", "[1]", "[{}]", R"([{"function": 1}])", R"([{"function": {"name": 1}}])",
        R"([{"function": {"name": ""}}])"})
    EXPECT_FALSE(toolNames(templateValueOfJson(wrong).value())) << wrong;
}

}  // namespace
}  // namespace hearth::llm
