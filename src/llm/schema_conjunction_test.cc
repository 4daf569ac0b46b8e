// SPDX-License-Identifier: Apache-2.0
// Schemas that hold together: `allOf`, and words beside `anyOf`, `oneOf` and `$ref`.
#include "llm/schema_conjunction.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "llm/testing/schema_texts.h"

namespace hearth::llm {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

TEST(SchemaConjunctionTest, PropertiesOfAllSchemasAreThere) {
  SchemaTexts texts(R"({"allOf": [{"$ref": "#/$defs/named"}, {"$ref": "#/$defs/aged"}],
      "type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}},
      "$defs": {"named": {"type": "object", "properties": {"name": {"type": "string"}},
                          "required": ["name"]},
                "aged": {"properties": {"age": {"type": "number", "minimum": 0},
                                        "id": {"type": "number", "maximum": 9}}}}})");
  for (const char* const right : {R"({"id":9,"name":""})", R"({"id":1,"name":"x","age":1.5})"})
    EXPECT_TRUE(texts.has(right)) << right;
  for (const char* const wrong : {R"({"id":1})", R"({"id":1.5,"name":""})",
                                  R"({"id":10,"name":""})", R"({"id":1,"name":"","age":-1})"})
    EXPECT_FALSE(texts.has(wrong)) << wrong;
}

TEST(SchemaConjunctionTest, OtherPropertiesOfOneSchemaAreThoseOfTheOther) {
  SchemaTexts texts(R"({"type": "object", "allOf": [
      {"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string", "maxLength": 1}},
      {"properties": {"b": {"type": "string"}, "a": {"minLength": 1}}}]})");
  EXPECT_TRUE(texts.has(R"({"a":"long","b":"x"})"));
  EXPECT_FALSE(texts.has(R"({"b":"long"})") || texts.has(R"({"a":""})"));
  SchemaTexts closed(R"({"allOf": [
      {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": false},
      {"properties": {"a": true, "b": true}}]})");
  EXPECT_TRUE(closed.has(R"({"a":null})") && closed.has("{}"));
  EXPECT_FALSE(closed.has(R"({"b":null})"));
  EXPECT_THAT(schemaProblem(R"({"allOf": [{"type": "object", "additionalProperties": false},
                                          {"required": ["b"]}]})"),
              HasSubstr("excludes"));
}

TEST(SchemaConjunctionTest, WordsBesideChoicesHoldForEach) {
  SchemaTexts texts(
      R"({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}},
      "anyOf": [{"required": ["a"]}, {"required": ["b"]}, {"type": "string"}]})");
  EXPECT_TRUE(texts.has(R"({"a":null})") && texts.has(R"({"b":null})"));
  EXPECT_FALSE(texts.has("{}") || texts.has(R"("")"));
  // Of what is beside it the schemas exclude each other.
  SchemaTexts one(
      R"({"type": "object", "required": ["kind"], "properties": {"kind": {"enum": [1, 2]}},
      "oneOf": [{"properties": {"kind": {"const": 1}, "x": {"type": "null"}}},
                {"properties": {"kind": {"const": 2.0}, "y": {"type": "null"}}}]})");
  EXPECT_TRUE(one.has(R"({"kind":1,"x":null})") && one.has(R"({"kind":2,"y":null})"));
  EXPECT_FALSE(one.has(R"({"kind":2,"x":null})"));
  EXPECT_THAT(schemaProblem(R"({"type": "object", "properties": {"a": true, "b": true},
                                "oneOf": [{"required": ["a"]}, {"required": ["b"]}]})"),
              HasSubstr("at once"));
  // Two choices are made.
  SchemaTexts two(R"({"anyOf": [{"type": "integer"}, {"type": "string"}],
                      "oneOf": [{"type": ["string", "null"]}, {"type": "number"}]})");
  EXPECT_TRUE(two.has("1") && two.has(R"("")"));
  EXPECT_FALSE(two.has("null") || two.has("1.5"));
}

TEST(SchemaConjunctionTest, ValuesAreCommonOnes) {
  SchemaTexts texts(R"({"allOf": [{"enum": [1, true, "a", {"x": [1]}, null]},
                                  {"enum": [{"x": [1.0]}, "a", 1.0, "b"]}]})");
  EXPECT_TRUE(texts.has("1") && texts.has(R"("a")") && texts.has(R"({"x": [1]})"));
  EXPECT_FALSE(texts.has("true") || texts.has("null") || texts.has(R"("b")"));
  EXPECT_THAT(schemaProblem(R"({"enum": [1], "const": true, "allOf": [true]})"),
              HasSubstr("no value"));
  EXPECT_THAT(schemaProblem(R"({"allOf": [{"type": "string"}, {"type": ["null", "object"]}]})"),
              HasSubstr("no value"));
}

TEST(SchemaConjunctionTest, LimitsOfOneSchemaHoldForTheValuesOfTheOther) {
  SchemaTexts texts(R"({"enum": [1, 5, "a", "abc"],
                        "anyOf": [{"type": "number", "minimum": 2}, {"type": "string", "maxLength": 1}]})");
  EXPECT_TRUE(texts.has("5") && texts.has(R"("a")"));
  EXPECT_FALSE(texts.has("1") || texts.has(R"("abc")"));
  // Of a choice no value may be left.
  SchemaTexts one(R"({"enum": [1, "a"], "anyOf": [{"type": "null"}, {"minimum": 1}]})");
  EXPECT_TRUE(one.has("1") && one.has(R"("a")"));
  EXPECT_THAT(schemaProblem(R"({"allOf": [{"enum": [1, 2]}, {"minimum": 3}]})"),
              HasSubstr("no value"));
}

TEST(SchemaConjunctionTest, WhatContainsItselfIsReadOrRefused) {
  SchemaTexts list(R"({"type": "object", "properties": {
      "next": {"allOf": [{"$ref": "#"}, {"required": ["v"]}]}, "v": {"type": "null"}}})");
  EXPECT_TRUE(list.has("{}") && list.has(R"({"next":{"next":{"v":null},"v":null}})"));
  EXPECT_FALSE(list.has(R"({"next":{}})"));
  SchemaTexts single(R"({"type": "object", "properties": {"next": {"allOf": [{"$ref": "#"}]}}})");
  EXPECT_TRUE(single.has(R"({"next":{"next":{}}})"));
  for (const char* const endless :
       {R"({"allOf": [{"$ref": "#"}, {"type": "null"}]})",
        R"({"type": "null", "anyOf": [{"$ref": "#"}, {"type": "null"}]})",
        R"({"type": "object", "required": ["a"], "properties": {"a": {"allOf": [{"$ref": "#"},
            {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}}]}}})"})
    EXPECT_NE(schemaProblem(endless), "") << endless;
}

TEST(SchemaConjunctionTest, WhatCannotBeJoinedIsRefusedByName) {
  for (const char* const word : {"pattern", "format"})
    EXPECT_THAT(
        schemaProblem(base::formatText(
            R"({{"type": "string", "allOf": [{{"{0}": "date"}}, {{"{0}": "time"}}]}})", word)),
        HasSubstr(base::formatText("'{}' twice", word)));
  EXPECT_THAT(schemaProblem(R"({"type": "integer", "allOf": [{"multipleOf": 2}]})"),
              HasSubstr("'multipleOf'"));
  EXPECT_THAT(schemaProblem(R"({"type": "object", "allOf": [{"unevaluatedProperties": false}]})"),
              HasSubstr("'unevaluatedProperties'"));
  EXPECT_THAT(schemaProblem(R"({"allOf": []})"), HasSubstr("'allOf'"));
  EXPECT_THAT(schemaProblem(R"({"$ref": 1, "type": "null"})"), HasSubstr("no text"));
  EXPECT_THAT(schemaProblem(R"({"allOf": [1, 2]})"), HasSubstr("an object is needed"));
  EXPECT_THAT(schemaProblem(R"({"type": "number", "minimum": "a", "allOf": [{"minimum": 1}]})"),
              HasSubstr("no number"));
}

TEST(SchemaConjunctionTest, SchemasThatGrowAreRefused) {
  // Each is twice the one before.
  std::string json = R"({"$ref": "#/$defs/d0", "$defs": {)";
  for (int i = 0; i < 40; ++i) {
    const std::string next = R"({"$ref": "#/$defs/d)" + std::to_string(i + 1) + "\"}";
    json += "\"d" + std::to_string(i) + R"(": {"allOf": [)" + next + ", " + next + "]},";
  }
  EXPECT_NE(schemaProblem(json + R"("d40": {"type": "null"}}})"), "");
  json = R"({"allOf": [)";
  for (int i = 0; i < 20; ++i)
    json += R"({"anyOf": [{"type": "null"}, {"type": ["null", "string"]}]},)";
  EXPECT_NE(schemaProblem(json + "true]}"), "");
}

// ---- Beside a judge ----------------------------------------------------------------------------

bool hasType(const Json& value, const Json& type) {
  if (type.is_array())
    return std::ranges::any_of(type, [&](const Json& one) { return hasType(value, one); });
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  return type == value.type_name();
}

// As the standard says it, word by word.
bool conforms(const Json& value, const Json& schema, const Json& document) {
  if (schema.is_boolean()) return schema.get<bool>();
  const auto count = [&](const Json& list) {
    return std::ranges::count_if(list,
                                 [&](const Json& one) { return conforms(value, one, document); });
  };
  for (const auto& [word, content] : schema.items()) {
    bool isRight = true;
    if (word == "type") isRight = hasType(value, content);
    if (word == "enum") isRight = std::ranges::contains(content, value);
    if (word == "allOf") isRight = count(content) == std::ssize(content);
    if (word == "anyOf") isRight = count(content) > 0;
    if (word == "oneOf") isRight = count(content) == 1;
    if (word == "$ref")
      isRight = conforms(value, document["$defs"][content.get<std::string>().substr(8)], document);
    if (value.is_number()) {
      if (word == "minimum") isRight = value >= content;
      if (word == "exclusiveMaximum") isRight = value < content;
    }
    if (value.is_array()) {
      if (word == "maxItems") isRight = value.size() <= content.get<size_t>();
      if (word == "items")
        isRight = std::ranges::all_of(
            value, [&](const Json& one) { return conforms(one, content, document); });
    }
    if (value.is_object()) {
      if (word == "required")
        isRight = std::ranges::all_of(
            content, [&](const Json& name) { return value.contains(name.get<std::string>()); });
      for (const auto& [name, member] : value.items()) {
        const bool isNamed = schema.contains("properties") && schema["properties"].contains(name);
        if (word == "properties" && isNamed)
          isRight = isRight && conforms(member, content[name], document);
        if (word == "additionalProperties" && !isNamed)
          isRight = isRight && conforms(member, content, document);
      }
    }
    if (!isRight) return false;
  }
  return true;
}

class RandomSchemas {
 public:
  explicit RandomSchemas(unsigned seed) : random_(seed) {}

  size_t below(size_t count) { return random_() % count; }
  std::mt19937* random() { return &random_; }

  Json schema(int depth) {
    Json made = Json::object();
    const auto list = [&](size_t size) {
      Json schemas = Json::array();
      for (size_t i = 0; i < size; ++i) schemas.push_back(schema(depth - 1));
      return schemas;
    };
    if (below(4) != 0) made["type"] = type();
    if (depth == 0) {
      if (below(3) == 0) made["minimum"] = below(3);
      if (below(4) == 0) made["exclusiveMaximum"] = 2 + below(3);
      if (below(6) == 0) made["enum"] = {1, 2, "a", true, nullptr};
      return made;
    }
    if (below(6) == 0) made["enum"] = {1, 3, nullptr, {1, nullptr}, {{"x", 1}}, {{"y", nullptr}}};
    for (const char* const word : {"allOf", "anyOf", "oneOf"})
      if (below(3) == 0) made[word] = list(1 + below(3));
    if (below(8) == 0) made["$ref"] = below(2) == 0 ? "#/$defs/a" : "#/$defs/b";
    if (below(3) == 0)
      for (const char* const name : {"x", "y", "z"})
        if (below(2) == 0) made["properties"][name] = schema(depth - 1);
    if (below(4) == 0) made["required"] = {std::string(1, static_cast<char>('x' + below(3)))};
    if (below(4) == 0)
      made["additionalProperties"] = below(2) == 0 ? Json(false) : schema(depth - 1);
    if (below(5) == 0) made["items"] = schema(depth - 1);
    if (below(5) == 0) made["maxItems"] = below(4);
    return made;
  }

 private:
  Json type() {
    const std::array<Json, 6> types = {"object", "array", "integer",
                                       "number", "null",  {"object", "integer", "null", "boolean"}};
    return types[std::min(below(9), below(6))];
  }

  std::mt19937 random_;
};

TEST(SchemaConjunctionTest, WhatIsWrittenConforms) {
  RandomSchemas schemas(7);
  int read = 0;
  for (int trial = 0; trial < 200; ++trial) {
    Json document = schemas.schema(2);
    document["$defs"] = {{"a", schemas.schema(1)}, {"b", schemas.schema(1)}};
    const std::string json = document.dump();
    if (!schemaProblem(json).empty()) continue;
    ++read;
    SchemaTexts texts(json);
    for (int i = 0; i < 4; ++i) {
      const std::string text = texts.make(schemas.random(), "}]\"");
      const Json value = Json::parse(text);
      EXPECT_TRUE(conforms(value, document, document)) << json << "\n" << text;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(read, 40);
}

}  // namespace
}  // namespace hearth::llm
