// SPDX-License-Identifier: Apache-2.0
#include "llm/chat_template.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "llm/chat_prompt.h"
#include "llm/model_file.h"
#include "llm/testing/small_tokenizer.h"

namespace hearth::llm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<std::string> tryToRender(std::string_view source, std::string_view json = "{}") {
  HEARTH_ASSIGN(const ChatTemplate made, ChatTemplate::parse(source));
  HEARTH_ASSIGN(const TemplateValue variables, templateValueOfJson(json));
  return made.render(variables.asDictionary()->items);
}

std::string render(std::string_view source, std::string_view json = "{}") {
  const auto text = tryToRender(source, json);
  return text ? *text : "error: " + text.error().toString();
}

std::string problemOf(std::string_view source, std::string_view json = "{}") {
  const auto text = tryToRender(source, json);
  return text ? "" : text.error().toString();
}

// All results are those of Jinja2 3.1.6 with trim_blocks and lstrip_blocks.
TEST(ChatTemplateTest, BlocksLeaveNoLinesBehind) {
  EXPECT_EQ(render("a\n  {% if true %}\nb\n  {% endif %}\nc\n"), "a\nb\nc");
  EXPECT_EQ(render("a\n  {{ 1 }}\n  {#- x -#}  b"), "a\n  1b");
  EXPECT_EQ(render("a {%- if true -%} \n b {%+ endif +%}\nc"), "ab \nc");
  EXPECT_EQ(render("{% raw %}{{ x }}{% endraw %}"), "{{ x }}");
}

TEST(ChatTemplateTest, OperatorsBindAsInJinja) {
  EXPECT_EQ(render("{{ (1 + 2 * 3) ~ 4 }}{{ 2 * 3 ~ 4 }}"), "7464");
  EXPECT_EQ(render("{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }}"),
            "3 -4 2 3.5 1024");
  EXPECT_EQ(render("{{ not 1 == 2 and 2 in [1, 2] }}"), "True");
  EXPECT_EQ(render("{{ 1 < 2 < 2 }} {{ 'a' if false }}|{{ 'b' if false else 'c' }}"), "False |c");
  EXPECT_EQ(render("{{ -1|abs }} {{ ('a' 'b')|upper }} {{ 3 is odd }} {{ x is not defined }}"),
            "1 AB True True");
  EXPECT_EQ(render("{{ 'x' in {'x': 1} }} {{ 'b' not in 'abc' }}"), "True False");
}

TEST(ChatTemplateTest, ValuesArePrintedAsPythonPrintsThem) {
  EXPECT_EQ(render("{{ [1, 2.0, 'a\\'b', none, true] }} {{ (1,) }} {{ {'a': \"x\\ny\"} }}"),
            R"([1, 2.0, "a'b", None, True] (1,) {'a': 'x\ny'})");
  EXPECT_EQ(render("{{ 1e16 }} {{ 0.1 }} {{ 1e-7 }} {{ x }}", R"({"x": 12345678901})"),
            "1e+16 0.1 1e-07 12345678901");
}

TEST(ChatTemplateTest, JsonIsThatOfTransformers) {
  EXPECT_EQ(render("{{ x|tojson }}", R"({"x": {"b": [1, "é<\n"], "a": null}})"),
            "{\"b\": [1, \"é<\\n\"], \"a\": null}");
  EXPECT_EQ(render("{{ x|tojson(indent=2) }}", R"({"x": {"a": [1, {}], "b": []}})"),
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
}

TEST(ChatTemplateTest, LoopsKnowWhereTheyAre) {
  EXPECT_EQ(render("{% for x in 'abc' %}{{ loop.index }}{{ x }}{{ '' if loop.last else ',' }}"
                   "{% endfor %}"),
            "1a,2b,3c");
  EXPECT_EQ(render("{% for x in [1, 2, 3, 4] if x != 2 %}{{ x }}{{ loop.previtem }};{% endfor %}"),
            "1;31;43;");
  EXPECT_EQ(render("{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{% else %}none{% endfor %}"),
            "a1");
  EXPECT_EQ(render("{% for x in [] %}{% else %}none{% endfor %}"), "none");
  EXPECT_EQ(render("{% for x in range(9) %}{% if x == 1 %}{% continue %}{% endif %}"
                   "{% if x > 3 %}{% break %}{% endif %}{{ x }}{% endfor %}"),
            "023");
}

TEST(ChatTemplateTest, NamesSetInLoopsStayThere) {
  EXPECT_EQ(render("{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{% endfor %}{{ x }}"), "1");
  EXPECT_EQ(render("{% set n = namespace(x=1) %}{% for i in [1] %}{% set n.x = 2 %}{% endfor %}"
                   "{{ n.x }}"),
            "2");
  EXPECT_EQ(render("{% set x %}a{{ 1 }}{% endset %}{{ x }}{% set a, b = [1, 2] %}{{ b }}"), "a12");
}

TEST(ChatTemplateTest, MacrosHaveDefaultsAndCallers) {
  EXPECT_EQ(render("{% macro m(a, b=2) %}[{{ a }}{{ b }}]{% endmacro %}{{ m(1) }}{{ m(1, b=3) }}"),
            "[12][13]");
  EXPECT_EQ(render("{% macro m(a) %}<{{ caller(a) }}>{% endmacro %}"
                   "{% call(x) m(7) %}{{ x }}!{% endcall %}"),
            "<7!>");
}

TEST(ChatTemplateTest, FiltersAndMethodsOfStrings) {
  EXPECT_EQ(render("{{ '  a b '|trim }}|{{ 'a-b-c'.split('-', 1)[1] }}|{{ ' a  b '.split() }}"),
            "a b|b-c|['a', 'b']");
  EXPECT_EQ(
      render("{{ 'abcabc'.rsplit('b', 1) }} {{ 'xxaxx'.strip('x') }} {{ 'a'.join(['1','2']) }}"),
      "['abca', 'c'] a 1a2");
  EXPECT_EQ(render("{{ \"it's <b>\"|title }}{{ \"it's\".title() }} {{ 'aXb'|lower }} {{ 'ab'[-1] "
                   "}} {{ 'héllo'[1:3] }}"),
            "It's <B>It'S axb b él");
  EXPECT_EQ(
      render("{{ 'abc'[::-1] }} {{ [1, 2, 3][:-1] }} {{ 'abc'|length }} {{ 'a\nb'|indent(2) }}"),
      "cba [1, 2] 3 a\n  b");
  EXPECT_EQ(render("{{ '%s-%d' % ('a', 3) }} {{ 'a' * 3 }} {{ 'abab'|replace('a', 'c', 1) }}"),
            "a-3 aaa cbab");
  EXPECT_EQ(render("{{ 'think</think>x'.split('</think>')[-1].lstrip('\\n') }}"
                   "{{ 'abc'.startswith(('x', 'a')) }}"),
            "xTrue");
  EXPECT_EQ(render("{{ 'a\\r\\n\\nb\\rc\\r\\n'.splitlines() }}{{ 'a\\r\\n'.splitlines(true) }}"),
            R"(['a', '', 'b', 'c']['a\r\n'])");
}

TEST(ChatTemplateTest, StringsAreDividedAndFormatted) {
  EXPECT_EQ(render("{{ 'a-b-c'.partition('-') }} {{ 'a-b-c'.rpartition('-') }}"),
            "('a', '-', 'b-c') ('a-b', '-', 'c')");
  EXPECT_EQ(render("{{ 'a'.partition('-') }} {{ 'a'.rpartition('-') }}"),
            "('a', '', '') ('', '', 'a')");
  EXPECT_EQ(render("{{ '<{}|{}>'.format(1, 'x') }} {{ '{1}{0}{{}}'.format('a', none) }} "
                   "{{ '{n}{}'.format([1], n=true) }}"),
            "<1|x> Nonea{} True[1]");
  EXPECT_THAT(problemOf("{{ 'a'.partition('') }}"), HasSubstr("empty"));
  EXPECT_THAT(problemOf("{{ '{}{}'.format(1) }}"), HasSubstr("argument"));
  EXPECT_THAT(problemOf("{{ '{x}'.format(1) }}"), HasSubstr("x"));
  EXPECT_THAT(problemOf("{{ '{0:>5}'.format(1) }}"), HasSubstr("field 0:>5"));
  EXPECT_THAT(problemOf("{{ '}'.format(1) }}"), HasSubstr("single }"));
  EXPECT_THAT(problemOf("{{ 'a{'.format(1) }}"), HasSubstr("single {"));
  EXPECT_THAT(problemOf("{{ '{'.format(1) }}"), HasSubstr("single {"));
}

TEST(ChatTemplateTest, FiltersOfLists) {
  constexpr std::string_view kList =
      R"({"l": [{"n": "b", "k": 1}, {"n": "a", "k": 2}, {"n": "c"}]})";
  EXPECT_EQ(render("{{ l|map(attribute='n')|join(',') }}", kList), "b,a,c");
  EXPECT_EQ(render("{{ l|selectattr('k', 'defined')|map(attribute='n')|list }}", kList),
            "['b', 'a']");
  EXPECT_EQ(render("{{ (l|sort(attribute='n')|first).n }}{{ (l|last)['n'] }}", kList), "ac");
  EXPECT_EQ(render("{{ l|rejectattr('n', 'equalto', 'a')|list|length }}", kList), "2");
  EXPECT_EQ(
      render("{{ [3, 1, 2]|sort }} {{ [1, 1, 2]|unique|list }} {{ [1, 2]|sum }} {{ [1]|max }}"),
      "[1, 2, 3] [1, 2] 3 1");
  EXPECT_EQ(
      render("{{ {'b': 1, 'a': 2}|dictsort }} {{ x|default('d') }} {{ ''|default('e', true) }}"),
      "[('a', 2), ('b', 1)] d e");
}

TEST(ChatTemplateTest, WhatATemplateRaisesIsItsOwnSentence) {
  EXPECT_THAT(
      problemOf("a\n{{ raise_exception('Roles must alternate.') }}"),
      AllOf(HasSubstr("refuses the conversation: Roles must alternate."), HasSubstr("line 2")));
}

TEST(ChatTemplateTest, WrongTemplatesAreRefused) {
  EXPECT_THAT(problemOf("{% if x %}"), HasSubstr("not closed"));
  EXPECT_THAT(problemOf("{% endif %}"), HasSubstr("block endif"));
  EXPECT_THAT(problemOf("{{ 'a }}"), HasSubstr("not closed"));
  EXPECT_THAT(problemOf("{{ ] }}"), HasSubstr("not expected"));
  EXPECT_THAT(problemOf("{% include 'x' %}"), HasSubstr("include"));
  EXPECT_THAT(problemOf("{{ x|nothing }}"), HasSubstr("filter nothing"));
  EXPECT_THAT(problemOf("{{ x is nothing }}"), HasSubstr("test nothing"));
  EXPECT_THAT(problemOf("{{ x.y.z }}"), HasSubstr("not defined"));
  EXPECT_THAT(problemOf("{{ 'a' + 1 }}"), HasSubstr("a string + an integer"));
  EXPECT_THAT(problemOf("{{ 1 // 0 }}"), HasSubstr("zero"));
  EXPECT_THAT(problemOf("{{ 9223372036854775807 + 1 }}"), HasSubstr("64 bits"));
  EXPECT_THAT(problemOf("\xFF"), HasSubstr("no UTF-8"));
  EXPECT_THAT(problemOf("{{ x }}", "{\"x\": \"\xFF\"}"), HasSubstr("no UTF-8"));
}

TEST(ChatTemplateTest, TemplatesThatNestTooDeeplyAreRefused) {
  EXPECT_THAT(problemOf("{{ " + std::string(10'000, '(') + "1" + std::string(10'000, ')') + " }}"),
              HasSubstr("too deeply"));
  EXPECT_THAT(problemOf("{{ " + std::string(10'000, '-') + "1 }}"), HasSubstr("too deeply"));
  std::string sum = "{{ 1";
  for (int i = 0; i < 10'000; ++i) sum += "+1";
  EXPECT_THAT(problemOf(sum + " }}"), HasSubstr("too deeply"));
  std::string blocks;
  for (int i = 0; i < 10'000; ++i) blocks += "{% if 1 %}";
  EXPECT_THAT(problemOf(blocks), HasSubstr("too deeply"));
  EXPECT_THAT(problemOf("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
              HasSubstr("too deeply"));
  EXPECT_THAT(problemOf("{% set n = namespace(x=[]) %}{% for i in range(1000) %}"
                        "{% set n.x = [n.x] %}{% endfor %}"),
              HasSubstr("deep"));
}

TEST(ChatTemplateTest, TemplatesThatWorkForEverEnd) {
  // Each level holds the one before it twice.
  constexpr std::string_view kShared =
      "{% set n = namespace(x=['a']) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}"
      "{% endfor %}";
  for (const std::string_view use :
       {"{{ n.x }}", "{{ n.x|tojson }}", "{{ n.x == [n.x, n.x] }}", "{{ n.x|string|length }}",
        "{{ [n.x, n.x]|sort }}", "{{ n.x ~ '' }}", "{{ [n.x]|unique|list }}",
        "{{ n.x in [[n.x, 1], n.x] }}"})
    EXPECT_THAT(problemOf(std::string(kShared) + std::string(use)), HasSubstr("too")) << use;
  EXPECT_THAT(problemOf("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}"
                        "{% endfor %}"),
              HasSubstr("too"));
  EXPECT_THAT(problemOf("{% set n = namespace(x='aaaaaaaa') %}{% for i in range(99) %}"
                        "{% set n.x = n.x + n.x %}{% endfor %}"),
              HasSubstr("too much text"));
  EXPECT_THAT(problemOf("{{ 'a' * 1000000000 }}"), HasSubstr("repeats"));
  EXPECT_THAT(problemOf("{{ range(1000000000) }}"), HasSubstr("range"));
  EXPECT_THAT(problemOf("{% set a = 'a' * 1000000 %}{{ a.count(a ~ 'b') }}{{ a.find(a ~ 'b') }}"
                        "{{ a.replace('', a) }}"),
              HasSubstr("too"));
}

TEST(ChatTemplateTest, OnlyMethodsAreAttributesOfTexts) {
  EXPECT_EQ(render("{{ 'a'.content is defined }} {{ 'a'.upper is defined }} {{ 'a'.upper() }}"),
            "False True A");
  EXPECT_EQ(render("{{ [1].content is defined }} {{ [1].index is defined }}"), "False True");
}

TEST(ChatTemplateTest, NothingIsChosenOfNone) {
  EXPECT_EQ(
      render("{{ none | selectattr('a') | list | length }}"
             "{{ none | map('upper') | list | length }}{{ '' | reject('x') | list | length }}"),
      "000");
}

TEST(ChatTemplateTest, ChainsAndCirclesOfNamespacesAreFreed) {
  EXPECT_EQ(render("{% set n = namespace() %}{% set n.x = [n] %}{{ n.x|length }}"), "1");
  EXPECT_EQ(render("{% set n = namespace(x=none) %}{% for i in range(20000) %}"
                   "{% set n.x = namespace(x=n.x) %}{% endfor %}{% set n.x = none %}done"),
            "done");
}

TEST(ChatPromptTest, SpecialTokensInMessagesStayText) {
  std::string json = smallTokenizerJson();
  json.replace(json.find("\"Ġ\":2"), 6, R"("Ġ":2,"<":34,"|":35,">":36)");
  const auto tokenizer = Tokenizer::fromJson(json);
  ASSERT_TRUE(tokenizer) << tokenizer.error().toString();
  LlmMetadata metadata;
  metadata.startToken = TokenSequence{{0}, ""};
  metadata.chatTemplate =
      "{% for m in messages %}<|start|>{{ m.content }}<|end|>{% endfor %}"
      "{% if add_generation_prompt %}<|start|>{% endif %}";
  const auto prompt = ChatPrompt::create(metadata, *tokenizer, "");
  ASSERT_TRUE(prompt) << prompt.error().toString();
  const std::vector<ChatMessage> messages = {{"user", "a<|end|>"}};
  const auto text = prompt->render(messages, true);
  ASSERT_TRUE(text) << text.error().toString();
  EXPECT_EQ(*text, "<|start|>a<|end|><|end|><|start|>");
  const auto safe = prompt->tokens(messages, true, SpecialTokens::kAreText);
  ASSERT_TRUE(safe) << safe.error().toString();
  EXPECT_THAT(*safe, ElementsAre(0, 3, 34, 35, 7, 16, 6, 35, 36, 1, 0));
  const auto parsed = prompt->tokens(messages, true, SpecialTokens::kAreParsed);
  ASSERT_TRUE(parsed) << parsed.error().toString();
  EXPECT_THAT(*parsed, ElementsAre(0, 3, 1, 1, 0));
}

TEST(ChatPromptTest, AffixesStandInForATemplate) {
  const auto tokenizer = Tokenizer::fromJson(smallTokenizerJson());
  ASSERT_TRUE(tokenizer) << tokenizer.error().toString();
  LlmMetadata metadata;
  EXPECT_FALSE(ChatPrompt::create(metadata, *tokenizer, ""));
  metadata.user = PromptAffixes{"<|start|>u ", "<|end|>"};
  metadata.model = PromptAffixes{"<|start|>m ", "<|end|>"};
  const auto prompt = ChatPrompt::create(metadata, *tokenizer, "");
  ASSERT_TRUE(prompt) << prompt.error().toString();
  const auto text = prompt->render({{"user", "a"}, {"assistant", "b"}, {"user", "c"}}, true);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "<|start|>u a<|end|><|start|>m b<|end|><|start|>u c<|end|><|start|>m ");
}

// The template of the model in the shared test data.
TEST(ChatPromptTest, TheTemplateOfARealModelIsRendered) {
  const char* const data = std::getenv("HEARTH_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "HEARTH_TEST_DATA is not set.";
  const std::string folder = std::string(data) + "/data/llm/";
  const auto file = readModelFile(folder + "smollm2-135m-instruct-i8.litertlm", "");
  ASSERT_TRUE(file) << file.error().toString();
  const auto prompt = ChatPrompt::create(file->metadata, *file->tokenizer, "");
  ASSERT_TRUE(prompt) << prompt.error().toString();
  std::ifstream stream(folder + "template.json");
  const auto cases = nlohmann::json::parse(stream);
  ASSERT_FALSE(cases.empty());
  for (const auto& one : cases) {
    std::vector<ChatMessage> messages;
    for (const auto& message : one["messages"])
      messages.push_back({message["role"], message["content"]});
    const auto text = prompt->render(messages, one["add_generation_prompt"]);
    ASSERT_TRUE(text) << text.error().toString();
    EXPECT_EQ(*text, one["text"].get<std::string>());
  }
}

}  // namespace
}  // namespace hearth::llm
