// SPDX-License-Identifier: Apache-2.0
// Schemas and the texts that the automaton of one lets through.
#include "llm/json_schema.h"

#include <gmock/gmock.h>

#include <random>
#include <string>

#include "llm/chat_template.h"
#include "llm/json_automaton.h"
#include "llm/testing/schema_texts.h"

namespace hearth::llm {
namespace {

using ::testing::HasSubstr;

TEST(JsonSchemaTest, AnyObjectIsAllOfJson) {
  SchemaTexts texts(R"({"type": "object"})");
  for (const char* const right :
       {"{}", "{ }", R"({"a":1})", R"({"a": [1, -2.5e+3, 0, true, false, null, "x", {}, []]})",
        "{\n  \"a\": {\n    \"b\": \"\\u00e9\\n\\\"\"\n  }\n}", R"({"é": "日本 🎉"})"})
    EXPECT_TRUE(texts.has(right)) << right;
  for (const char* const wrong : {"",
                                  "[]",
                                  "{",
                                  "{]",
                                  R"({"a"})",
                                  R"({"a":})",
                                  R"({"a":1,})",
                                  R"({a:1})",
                                  R"({"a":01})",
                                  R"({"a":1.})",
                                  R"({"a":+1})",
                                  R"({"a":"\x"})",
                                  R"({"a":"\ud800"})",
                                  "{\"a\":\"\n\"}",
                                  "{\"a\":\"\xFF\"}",
                                  "{\"a\":\"\xC0\x80\"}",
                                  "{\"a\":\"\xED\xA0\x80\"}",
                                  "{\"a\":\"\xF4\x90\x80\x80\"}",
                                  "{} ",
                                  R"({"a":tru})"})
    EXPECT_FALSE(texts.has(wrong)) << wrong;
}

TEST(JsonSchemaTest, PropertiesComeInTheirOrder) {
  SchemaTexts texts(R"({"type": "object", "additionalProperties": false, "required": ["b", "d"],
      "properties": {"a": {"type": "integer"}, "b": {"type": "string"}, "c": {"type": "null"},
                     "d": {"type": "boolean"}, "e": {"type": "number"}}})");
  for (const char* const right :
       {R"({"b":"","d":true})", R"({"a":1,"b":"x","c":null,"d":false,"e":1.5})",
        R"({"b":"","c":null,"d":true})"})
    EXPECT_TRUE(texts.has(right)) << right;
  for (const char* const wrong :
       {"{}", R"({"a":1})", R"({"d":true,"b":""})", R"({"b":"","d":true,"x":1})",
        R"({"b":"","b":"","d":true})", R"({"a":1.5,"b":"","d":true})", R"({"b":"","d":true,)"})
    EXPECT_FALSE(texts.has(wrong)) << wrong;
  // Nothing leads into what cannot end: behind the last property comes no comma.
  EXPECT_EQ(texts.stateBehind(R"({"b":"","d":true,"e":1,)"), JsonAutomaton::kWrong);
}

TEST(JsonSchemaTest, CountsAreLimits) {
  SchemaTexts array(
      R"({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2})");
  EXPECT_TRUE(array.has("[1]") && array.has("[1, 2]"));
  EXPECT_FALSE(array.has("[]") || array.has("[1,2,3]") || array.has("[1,]"));
  SchemaTexts many(R"({"type": "array", "items": {"type": "null"}, "minItems": 2})");
  EXPECT_FALSE(many.has("[null]"));
  EXPECT_TRUE(many.has("[null,null]") && many.has("[null,null,null,null]"));
  SchemaTexts text(R"({"type": "string", "minLength": 2, "maxLength": 3})");
  EXPECT_TRUE(text.has(R"("ab")") && text.has(R"("é\n日")"));
  EXPECT_FALSE(text.has(R"("a")") || text.has(R"("abcd")"));
}

TEST(JsonSchemaTest, ValuesAreThoseOfAList) {
  SchemaTexts texts(R"({"enum": ["red", "re", 1, 12, null, {"a": [1]}]})");
  for (const char* const right : {R"("red")", R"("re")", "1", "12", "null", R"({"a": [1]})"})
    EXPECT_TRUE(texts.has(right)) << right;
  EXPECT_FALSE(texts.has(R"("r")") || texts.has("2") || texts.has("123"));
  EXPECT_TRUE(SchemaTexts(R"({"const": "x"})").has(R"("x")"));
  SchemaTexts strings(R"({"type": "string", "enum": ["a", 1]})");
  EXPECT_TRUE(strings.has(R"("a")"));
  EXPECT_FALSE(strings.has("1"));
}

TEST(JsonSchemaTest, OfAListOnlyValuesWithinTheLimitsAreLeft) {
  SchemaTexts numbers(R"({"enum": [1, 2, 3.5, 4, "a"], "minimum": 2, "exclusiveMaximum": 4})");
  EXPECT_TRUE(numbers.has("2") && numbers.has("3.5") && numbers.has(R"("a")"));
  EXPECT_FALSE(numbers.has("1") || numbers.has("4"));
  SchemaTexts texts(R"({"type": "string", "enum": ["a", "ab", "日本語", "abcd", "x\u0001"],
                        "minLength": 2, "maxLength": 3, "pattern": "^[^b]*b?$"})");
  EXPECT_TRUE(texts.has(R"("ab")") && texts.has(R"("日本語")") && texts.has("\"x\\u0001\""));
  EXPECT_FALSE(texts.has(R"("a")") || texts.has(R"("abcd")"));
  SchemaTexts lists(R"({"enum": [[], [1], [1, "b"], [1, 2, 3], null], "minItems": 1, "maxItems": 2,
                        "items": {"type": "integer"}})");
  EXPECT_TRUE(lists.has("[1]") && lists.has("null"));
  EXPECT_FALSE(lists.has("[]") || lists.has(R"([1, "b"])") || lists.has("[1, 2, 3]"));
  SchemaTexts objects(R"({"enum": [{"a": 1}, {"a": "x"}, {"a": 1, "b": 2}, {}],
      "properties": {"a": {"$ref": "#/$defs/number"}}, "required": ["a"],
      "additionalProperties": false, "$defs": {"number": {"anyOf": [{"const": 1.0}, {"type": "null"}]}}})");
  EXPECT_TRUE(objects.has(R"({"a": 1})"));
  EXPECT_FALSE(objects.has(R"({"a": "x"})") || objects.has("{}"));
  EXPECT_FALSE(objects.has(R"({"a": 1, "b": 2})"));
  SchemaTexts both(R"({"enum": [1, 2], "const": 2, "description": "the larger one"})");
  EXPECT_TRUE(both.has("2"));
  EXPECT_FALSE(both.has("1"));
  EXPECT_TRUE(SchemaTexts(R"({"const": "2020-02-29", "format": "date"})").has(R"("2020-02-29")"));
}

TEST(JsonSchemaTest, AListWithoutAValueWithinTheLimitsIsRefused) {
  for (const char* const none :
       {R"({"enum": [1, 2], "minimum": 3})", R"({"const": "abc", "maxLength": 2})",
        R"({"enum": ["a"], "pattern": "b"})", R"({"enum": [1], "const": true})", R"({"enum": []})",
        R"({"enum": [[1]], "items": false})"})
    EXPECT_THAT(schemaProblem(none), HasSubstr("without a value")) << none;
  EXPECT_THAT(schemaProblem(R"({"enum": [4], "multipleOf": 2})"), HasSubstr("'multipleOf'"));
  EXPECT_THAT(schemaProblem(R"({"const": "2021-02-29", "format": "date"})"),
              HasSubstr("for certain"));
  EXPECT_THAT(schemaProblem(R"({"const": "a", "format": "color"})"), HasSubstr("'color'"));
  EXPECT_THAT(schemaProblem(R"({"const": 1, "minimum": "a"})"), HasSubstr("no number"));
  EXPECT_THAT(schemaProblem(R"({"const": [1], "items": {"$ref": "#/$defs/a"},
                                "$defs": {"a": {"$ref": "#/$defs/a"}}})"),
              HasSubstr("nests"));
}

TEST(JsonSchemaTest, ChoicesAreFollowedSideBySide) {
  SchemaTexts texts(R"({"anyOf": [
      {"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "integer"}},
       "required": ["kind", "x"]},
      {"type": "object", "properties": {"kind": {"const": "ab"}, "y": {"type": "string"}},
       "required": ["kind", "y"]},
      {"type": ["string", "null"]}]})");
  for (const char* const right :
       {R"({"kind":"a","x":1})", R"({"kind":"ab","y":""})", R"("")", "null"})
    EXPECT_TRUE(texts.has(right)) << right;
  EXPECT_FALSE(texts.has(R"({"kind":"a","y":""})") || texts.has("1"));
}

TEST(JsonSchemaTest, ReferencesMayLeadBack) {
  SchemaTexts texts(R"({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object",
      "properties": {"value": {"type": "integer"},
                     "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
      "required": ["value", "next"], "additionalProperties": false}}})");
  EXPECT_TRUE(texts.has(R"({"value":1,"next":{"value":2,"next":null}})"));
  EXPECT_FALSE(texts.has(R"({"value":1})"));
  // Where it nests as deeply as it may, only what ends it can come.
  std::string text;
  for (uint32_t i = 0; i < JsonSchema::kMaxDepth; ++i) text += R"({"value":1,"next":)";
  EXPECT_NE(texts.stateBehind(text + "n"), JsonAutomaton::kWrong);
  EXPECT_EQ(texts.stateBehind(text + "{"), JsonAutomaton::kWrong);
  // A schema may be its own choice, which adds nothing.
  SchemaTexts loop(R"({"anyOf": [{"$ref": "#"}, {"type": "null"}]})");
  EXPECT_TRUE(loop.has("null"));
}

TEST(JsonSchemaTest, NumbersAndSpacesComeToAnEnd) {
  SchemaTexts texts(R"({"type": "array", "items": {"type": "number"}})");
  const std::string digits(JsonAutomaton::kMaxDigits, '3');
  EXPECT_TRUE(texts.has("[" + digits + "." + digits + "e-10]"));
  EXPECT_EQ(texts.stateBehind("[" + digits + "3"), JsonAutomaton::kWrong);
  EXPECT_EQ(texts.stateBehind("[0." + digits + "3"), JsonAutomaton::kWrong);
  EXPECT_EQ(texts.stateBehind("[1e100"), JsonAutomaton::kWrong);
  EXPECT_TRUE(texts.has("[\n" + std::string(JsonAutomaton::kMaxSpaces, ' ') + "1]"));
  EXPECT_EQ(texts.stateBehind("[\n" + std::string(JsonAutomaton::kMaxSpaces + 1, ' ')),
            JsonAutomaton::kWrong);
  EXPECT_EQ(texts.stateBehind("[\n\n"), JsonAutomaton::kWrong);
  // A number ends by itself where no more digits may come.
  SchemaTexts number(R"({"type": "integer"})");
  EXPECT_TRUE(number.automaton().mustEnd(number.stateBehind("-0")));
  EXPECT_TRUE(number.automaton().mustEnd(number.stateBehind(digits)));
  EXPECT_FALSE(number.automaton().mustEnd(number.stateBehind("1")));
}

TEST(JsonSchemaTest, WhoeverTakesWhatMayComeGetsToAnEnd) {
  std::mt19937 random(1);
  for (const char* const schema :
       {R"({"type": "object"})",
        R"({"type": "array", "minItems": 2, "maxItems": 4, "items": {"type": "object",
            "properties": {"a": {"type": "string", "maxLength": 5}, "b": {"enum": [1, "x"]},
                           "c": {"anyOf": [{"type": "number"}, {"type": "boolean"}]}},
            "required": ["b"]}})",
        R"({"$ref": "#/$defs/t", "$defs": {"t": {"type": "object", "required": ["l"],
            "properties": {"l": {"type": "array", "items": {"$ref": "#/$defs/t"}},
                           "s": {"type": "integer"}}}}})"}) {
    SchemaTexts texts(schema);
    for (int trial = 0; trial < 50; ++trial) {
      const std::string text = texts.make(&random, "}]\"");
      EXPECT_TRUE(templateValueOfJson(text)) << text;
      EXPECT_TRUE(texts.has(text)) << text;
    }
  }
}

TEST(JsonSchemaTest, WhatIsNotSupportedIsRefusedByName) {
  EXPECT_THAT(schemaProblem(R"({"type": "array", "uniqueItems": true})"),
              HasSubstr("'uniqueItems'"));
  EXPECT_THAT(schemaProblem(R"({"type": "integer", "multipleOf": 2})"), HasSubstr("'multipleOf'"));
  EXPECT_THAT(schemaProblem(R"({"not": {"type": "null"}})"), HasSubstr("'not'"));
  EXPECT_THAT(schemaProblem(R"({"$ref": "other.json#/a"})"), HasSubstr("no place"));
  EXPECT_THAT(schemaProblem(R"({"properties": {"a": {}}})"), HasSubstr("`type`"));
  EXPECT_THAT(schemaProblem(R"({"type": "array", "maxItems": 1e30})"), HasSubstr("no count"));
  EXPECT_THAT(schemaProblem(R"({"type": "array", "maxItems": 1000000})"), HasSubstr("at most"));
  EXPECT_EQ(schemaProblem(R"({"type": "object", "title": "T", "description": "d",
                          "properties": {"a": {"default": 1, "type": "integer"}}})"),
            "");
}

TEST(JsonSchemaTest, WhatNoTextConformsToIsRefused) {
  EXPECT_THAT(schemaProblem(R"({"type": "object", "properties": {"a": {"$ref": "#"}},
                            "required": ["a"]})"),
              HasSubstr("contains itself"));
  EXPECT_THAT(schemaProblem(R"({"anyOf": [{"$ref": "#"}]})"), HasSubstr("no value"));
  EXPECT_THAT(schemaProblem(R"({"type": "string", "minLength": 3, "maxLength": 2})"),
              HasSubstr("above"));
  EXPECT_THAT(schemaProblem(R"({"type": "string", "enum": [1]})"), HasSubstr("its type"));
  EXPECT_THAT(
      schemaProblem(R"({"type": "object", "required": ["a"], "additionalProperties": false})"),
      HasSubstr("excludes"));
  for (const char* const wrong :
       {"", "1", "null", R"({"type": 1})", R"({"type": "text"})", R"({"type": []})",
        R"({"anyOf": []})", R"({"enum": 1})", "false", R"({"type": "object", "properties": [1]})"})
    EXPECT_NE(schemaProblem(wrong), "") << wrong;
}

TEST(JsonSchemaTest, ManyReferencesInARowAreRead) {
  std::string json = R"({"$ref": "#/$defs/d0", "$defs": {)";
  for (int i = 0; i < 1500; ++i)
    json +=
        "\"d" + std::to_string(i) + "\": {\"$ref\": \"#/$defs/d" + std::to_string(i + 1) + "\"},";
  SchemaTexts texts(json + R"("d1500": {"type": "null"}}})");
  EXPECT_TRUE(texts.has("null"));
}

}  // namespace
}  // namespace hearth::llm
