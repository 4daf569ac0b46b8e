// SPDX-License-Identifier: Apache-2.0
// What `pattern`, `format`, limits of numbers and `oneOf` in a schema let through, beside other
// implementations of the same.
#include <arpa/inet.h>
#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <string>

#include "base/format.h"
#include "llm/testing/schema_texts.h"

namespace hearth::llm {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

Json patternSchema(const char* pattern) {
  return {{"type", "string"}, {"pattern", pattern}};
}

bool hasString(SchemaTexts* texts, const std::string& text) {
  return texts->has(Json(text).dump());
}

TEST(JsonSchemaLimitsTest, StringsOfAPatternAreThoseThatTheStandardLibraryFinds) {
  constexpr const char* kPatterns[] = {
      "^[a-c]+$",          "b",           "^ab?$|^c{2}", "(ab|ba)*c$",   "^$",
      "^(a|b){2,3}$",      "[^a]b",       "^a.c$",       "^\\d-\\w\\s?", "a{2}",
      "^(?:a|bc)*(?:c)?$", "c|^a",        "^(a*b)+$",    "^a+?b*?$",     "a|^",
      "[\\]\\-b]",         "\\x61\\u0062"};
  std::mt19937 random(3);
  for (const char* const pattern : kPatterns) {
    SchemaTexts texts(patternSchema(pattern).dump());
    const std::regex judge(pattern, std::regex::ECMAScript);
    for (int trial = 0; trial < 400; ++trial) {
      std::string text;
      for (uint32_t size = random() % 7; size > 0; --size) text += "abc-1 _]"[random() % 8];
      EXPECT_EQ(hasString(&texts, text), std::regex_search(text, judge)) << pattern << ": " << text;
    }
    for (int trial = 0; trial < 20; ++trial) {
      const std::string made = texts.make(&random, "\"");
      ASSERT_TRUE(Json::accept(made)) << made;
    }
  }
}

TEST(JsonSchemaLimitsTest, CharactersAreThoseOfUnicodeAndWrittenAsJsonAsks) {
  SchemaTexts letters(patternSchema("^[ß-é]$").dump());
  EXPECT_TRUE(hasString(&letters, "ß") && hasString(&letters, "è"));
  EXPECT_FALSE(hasString(&letters, "ê") || hasString(&letters, "e") || letters.has("\"\xC3\""));
  SchemaTexts any(patternSchema("^.$").dump());
  for (const char* const one : {"a", "é", "日", "🎉", "\"", "\\", "\t", "/"})
    EXPECT_TRUE(hasString(&any, one)) << one;
  EXPECT_TRUE(any.has(R"("\/")"));
  for (const char* const wrong :
       {"\"\n\"", "\"\t\"", R"("\n")", R"("ab")", R"("")", "\"\\\"", "\"\xED\xA0\x80\"",
        "\"\xC0\x80\"", "\"\xE0\x80\x80\"", "\"\xF4\x90\x80\x80\"", "\"\x01\""})
    EXPECT_FALSE(any.has(wrong)) << wrong;
  SchemaTexts wide(patternSchema("^[\\u{1F380}-\\u{1F38F}\\ud83c\\udf90]+$").dump());
  EXPECT_TRUE(hasString(&wide, "🎉🎀🎐"));
  EXPECT_FALSE(hasString(&wide, "🎑"));
  // A control character without a letter of its own is not written.
  EXPECT_THAT(schemaProblem(patternSchema("^\\x01$").dump()), HasSubstr("no string"));
}

TEST(JsonSchemaLimitsTest, APatternAndALengthHoldTogether) {
  Json schema = patternSchema("^(?:ab)*$");
  schema["minLength"] = 3;
  schema["maxLength"] = 7;
  SchemaTexts texts(schema.dump());
  EXPECT_TRUE(hasString(&texts, "abab") && hasString(&texts, "ababab"));
  EXPECT_FALSE(hasString(&texts, "ab") || hasString(&texts, "abababab"));
  // Nothing leads into what cannot end.
  EXPECT_EQ(texts.stateBehind("\"abababa"), JsonAutomaton::kWrong);
  schema["pattern"] = "é$";
  schema["minLength"] = 2;
  schema["maxLength"] = 2;
  SchemaTexts two(schema.dump());
  EXPECT_TRUE(hasString(&two, "éé") && hasString(&two, "日é"));
  EXPECT_FALSE(hasString(&two, "é") || hasString(&two, "日日é"));
  schema["pattern"] = "^a{5}$";
  EXPECT_THAT(schemaProblem(schema.dump()), HasSubstr("no string of its length"));
}

TEST(JsonSchemaLimitsTest, PatternsThatCannotBeSaidAreRefused) {
  for (const char* const pattern :
       {"(?=a)", "(?<!a)b", "\\bword", "(a)\\1", "\\p{L}", "[]a]", "a{1001}", "(?i)a", "\\cA",
        "^(a|b)*a(a|b){30}$", "((a{1000}){1000}){1000}"}) {
    const auto refused = JsonSchema::parse(patternSchema(pattern).dump());
    ASSERT_FALSE(refused) << pattern;
    EXPECT_THAT(refused.error().message(), HasSubstr("'pattern'")) << pattern;
    EXPECT_EQ(refused.error().code(), ErrorCode::kUnsupported) << pattern;
  }
  for (const char* const pattern : {"(", ")", "[a", "*a", "a**", "[b-a]", "\\", "a{2,1}", "a{,2}",
                                    "[\\d-a]", "\\u12", "\\x1"}) {
    const auto refused = JsonSchema::parse(patternSchema(pattern).dump());
    ASSERT_FALSE(refused) << pattern;
    EXPECT_THAT(refused.error().message(), HasSubstr("'pattern'")) << pattern;
    EXPECT_EQ(refused.error().code(), ErrorCode::kBadData) << pattern;
  }
  // Of nothing, as often as it likes.
  std::string nothing = "()";
  for (int i = 0; i < 20; ++i) nothing = "(" + nothing + "{1000})";
  EXPECT_THAT(schemaProblem(patternSchema(nothing.c_str()).dump()), HasSubstr("too long"));
  EXPECT_THAT(schemaProblem(R"({"type": "string", "pattern": 1})"), HasSubstr("no text"));
  EXPECT_THAT(schemaProblem(R"({"type": "string", "pattern": "a", "format": "date"})"),
              HasSubstr("beside"));
  EXPECT_EQ(schemaProblem(R"({"type": ["string", "null"], "pattern": "", "maxLength": 9})"), "");
  // It says nothing about other types.
  EXPECT_TRUE(SchemaTexts(R"({"type": "integer", "pattern": "a"})").has("1"));
}

TEST(JsonSchemaLimitsTest, DatesAreThoseOfTheCalendar) {
  SchemaTexts texts(R"({"type": "string", "format": "date"})");
  for (const int year :
       {0, 1, 4, 10, 100, 400, 900, 1000, 1900, 1996, 2000, 2023, 2024, 2100, 9999})
    for (unsigned month = 0; month <= 13; ++month)
      for (unsigned day = 0; day <= 32; ++day) {
        const std::string text = base::formatText("{:04}-{:02}-{:02}", year, month, day);
        const bool isRight =
            year > 0 &&
            (std::chrono::year(year) / std::chrono::month(month) / std::chrono::day(day)).ok();
        EXPECT_EQ(hasString(&texts, text), isRight) << text;
      }
  EXPECT_FALSE(hasString(&texts, "2024-1-01") || hasString(&texts, "2024-01-01 "));
}

TEST(JsonSchemaLimitsTest, TextsHaveTheirFormat) {
  const std::array<std::pair<const char*, std::vector<const char*>>, 7> right = {{
      {"time", {"00:00:00Z", "23:59:59.125+02:00"}},
      {"date-time", {"2024-02-29T12:00:00Z", "1999-12-31T23:59:59.9-05:30"}},
      {"duration", {"P1Y2M3DT4H5M6S", "PT1M", "P4W", "P1D", "PT5S"}},
      {"uuid", {"123e4567-e89b-12d3-A456-426614174000"}},
      {"hostname", {"a", "www.example.org", "a-1.b"}},
      {"email", {"a.b+c@example.org", "x@y.z"}},
      {"ipv4", {"0.0.0.0", "255.249.9.10"}},
  }};
  for (const auto& [format, list] : right) {
    SchemaTexts texts(Json{{"type", "string"}, {"format", format}}.dump());
    for (const char* const text : list) EXPECT_TRUE(hasString(&texts, text)) << format << text;
  }
  const std::array<std::pair<const char*, std::vector<const char*>>, 7> wrong = {{
      {"time", {"24:00:00Z", "00:60:00Z", "00:00:00", "00:00Z", "00:00:00.Z"}},
      {"date-time", {"2023-02-29T12:00:00Z", "2024-02-29 12:00:00Z", "2024-02-29"}},
      {"duration", {"P", "PT", "1D", "P1", "P1DT", "P1W1D", "PT1H1S"}},
      {"uuid", {"123e4567-e89b-12d3-a456-42661417400", "123e4567e89b12d3a456426614174000"}},
      {"hostname", {"", "-a", "a-", "a..b", ".a", "a_b"}},
      {"email", {"a", "a@b", "@example.org", "a..b@c.d", ".a@c.d"}},
      {"ipv4", {"256.0.0.1", "1.2.3", "01.2.3.4", "1.2.3.4.5"}},
  }};
  for (const auto& [format, list] : wrong) {
    SchemaTexts texts(Json{{"type", "string"}, {"format", format}}.dump());
    for (const char* const text : list) EXPECT_FALSE(hasString(&texts, text)) << format << text;
  }
  EXPECT_THAT(schemaProblem(R"({"type": "string", "format": "iri"})"), HasSubstr("'iri'"));
}

TEST(JsonSchemaLimitsTest, AddressesAreThoseThatTheSystemReads) {
  std::mt19937 random(5);
  for (const auto& [format, family] : {std::pair("ipv4", AF_INET), std::pair("ipv6", AF_INET6)}) {
    SchemaTexts texts(Json{{"type", "string"}, {"format", format}}.dump());
    for (int trial = 0; trial < 300; ++trial) {
      const std::string text = Json::parse(texts.make(&random, "\":.")).get<std::string>();
      std::array<unsigned char, 16> address;
      EXPECT_EQ(inet_pton(family, text.c_str(), address.data()), 1) << text;
    }
  }
  SchemaTexts texts(R"({"type": "string", "format": "ipv6"})");
  for (const char* const text :
       {"::", "::1", "1::", "1:2:3:4:5:6:7:8", "fe80::1:2", "1::3:4:5:6:7:8"})
    EXPECT_TRUE(hasString(&texts, text)) << text;
}

TEST(JsonSchemaLimitsTest, NumbersLieWithinTheirLimits) {
  const std::array<double, 12> limits = {-100, -12.5, -1,   -0.25, 0,  0.03,
                                         0.5,  1,     9.99, 10,    25, 1e3};
  std::mt19937 random(7);
  for (const char* const type : {"integer", "number"})
    for (const double least : limits)
      for (const double most : limits)
        for (const bool isExcluded : {false, true}) {
          const Json schema = {{"type", type},
                               {isExcluded ? "exclusiveMinimum" : "minimum", least},
                               {isExcluded ? "exclusiveMaximum" : "maximum", most}};
          const auto isWithin = [&](double value) {
            return isExcluded ? value > least && value < most : value >= least && value <= most;
          };
          if (!schemaProblem(schema.dump()).empty()) {
            const bool isInteger = std::string(type) == "integer";
            const double first = isInteger ? std::ceil(least) : least;
            EXPECT_TRUE(least > most || (isExcluded && least == most) || isInteger) << schema;
            if (isInteger) {
              EXPECT_FALSE(isWithin(first) || isWithin(first + 1)) << schema;
            }
            continue;
          }
          SchemaTexts texts(schema.dump());
          for (int i = -1250; i <= 1250; i += 1 + static_cast<int>(random() % 9)) {
            const bool isWhole = i % 10 == 0;
            if (!isWhole && std::string(type) == "integer") continue;
            const double value = i / 10.0;
            // JSON writes them with a fraction where that is not zero.
            std::string text = Json(value).dump();
            if (isWhole) text = std::to_string(i / 10);
            EXPECT_EQ(texts.has(text), isWithin(value)) << schema << text;
          }
          for (int trial = 0; trial < 5; ++trial) {
            const std::string text = texts.make(&random, "");
            EXPECT_TRUE(texts.has(text)) << schema << text;
            EXPECT_TRUE(isWithin(Json::parse(text).get<double>())) << schema << text;
          }
        }
}

TEST(JsonSchemaLimitsTest, LimitsOfOneSideAndLargeOnes) {
  SchemaTexts positive(R"({"type": "integer", "exclusiveMinimum": 0})");
  EXPECT_TRUE(positive.has("1") && positive.has("999999999999999999"));
  EXPECT_FALSE(positive.has("0") || positive.has("-1") || positive.has("-0") ||
               positive.has("1.5"));
  EXPECT_EQ(positive.stateBehind("-"), JsonAutomaton::kWrong);
  SchemaTexts negative(R"({"type": "number", "maximum": -0.5})");
  EXPECT_TRUE(negative.has("-0.5") && negative.has("-0.50") && negative.has("-7"));
  EXPECT_FALSE(negative.has("-0.49") || negative.has("0") || negative.has("-5e1"));
  SchemaTexts zero(R"({"type": "number", "minimum": 0, "maximum": 0})");
  EXPECT_TRUE(zero.has("0") && zero.has("0.0"));
  EXPECT_FALSE(zero.has("0.1") || zero.has("-1"));
  EXPECT_TRUE(SchemaTexts(R"({"type": "integer", "maximum": 1e300})").has("999999999999999999"));
  EXPECT_TRUE(SchemaTexts(R"({"type": "number", "minimum": 1e-300, "maximum": 1})").has("0.001"));
  // The stricter one counts.
  SchemaTexts both(R"({"type": "integer", "minimum": 3, "exclusiveMinimum": 3, "maximum": 9,
                       "exclusiveMaximum": 12})");
  EXPECT_TRUE(both.has("4") && both.has("9"));
  EXPECT_FALSE(both.has("3") || both.has("10"));
  SchemaTexts list(
      R"({"type": "array", "items": {"type": "integer", "minimum": 5, "maximum": 17}})");
  EXPECT_TRUE(list.has("[5, 17,9 ]"));
  EXPECT_FALSE(list.has("[18]") || list.has("[1]"));
  EXPECT_EQ(list.stateBehind("[18"), JsonAutomaton::kWrong);
  EXPECT_THAT(schemaProblem(R"({"type": "integer", "minimum": 2, "maximum": 1})"),
              HasSubstr("none"));
  EXPECT_THAT(schemaProblem(R"({"type": "integer", "minimum": 1e20})"), HasSubstr("none"));
  EXPECT_THAT(schemaProblem(R"({"type": "integer", "minimum": "1"})"), HasSubstr("no number"));
  EXPECT_THAT(schemaProblem(R"({"type": "integer", "exclusiveMinimum": true})"),
              HasSubstr("no number"));
}

TEST(JsonSchemaLimitsTest, OneOfIsForSchemasThatExcludeEachOther) {
  for (const char* const schema :
       {R"({"oneOf": [{"type": "null"}]})",
        R"({"oneOf": [{"type": "string"}, {"type": ["number", "null"]}, {"type": "array"}]})",
        R"({"oneOf": [{"const": "a"}, {"enum": ["b", 1]}, {"type": "boolean"}]})",
        R"({"oneOf": [{"type": "string", "maxLength": 2}, {"type": "string", "minLength": 3}]})",
        R"({"oneOf": [{"type": "array", "items": {"type": "null"}, "minItems": 1},
                      {"type": "array", "items": {"type": "string"}, "minItems": 1}]})",
        // By a property that both know, as what pydantic writes.
        R"({"discriminator": {"propertyName": "kind"}, "oneOf": [{"$ref": "#/$defs/a"},
            {"$ref": "#/$defs/b"}], "$defs": {
            "a": {"type": "object", "properties": {"kind": {"const": "a"}}, "required": ["kind"]},
            "b": {"type": "object", "properties": {"kind": {"enum": ["b", "c"]}}}}})",
        // By properties that are required.
        R"({"oneOf": [{"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]},
                      {"type": "object", "properties": {"b": {"type": "null"}}, "required": ["b"]}]})",
        R"({"oneOf": [{"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]},
                      {"type": "object", "properties": {"b": {"type": "null"}},
                       "additionalProperties": false, "required": ["b"]}]})"})
    EXPECT_EQ(schemaProblem(schema), "") << schema;
  for (const char* const schema :
       {R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})",
        R"({"oneOf": [{"enum": [1, 2]}, {"enum": [2.0]}]})",
        R"({"oneOf": [{"type": "string"}, {"const": "a"}]})",
        R"({"oneOf": [{"type": "object"}, {"type": "object"}]})",
        R"({"oneOf": [{"type": "array"}, {"type": "array", "minItems": 1}]})",
        // The first one may be written without what the second one has.
        R"({"oneOf": [{"type": "object", "properties": {"a": {"type": "null"}}},
                      {"type": "object", "properties": {"b": {"type": "null"}}}]})",
        R"({"oneOf": [{"type": "object", "properties": {"a": {"const": 1}}},
                      {"type": "object", "properties": {"a": {"const": 2}}}]})",
        // A text of the first one conforms to the second one, though none of that to the first.
        R"({"oneOf": [{"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]},
                      {"type": "object", "properties": {"b": {"type": "null"}}}]})"})
    EXPECT_THAT(schemaProblem(schema), HasSubstr("'oneOf'")) << schema;
  SchemaTexts texts(R"({"oneOf": [{"type": "string", "maxLength": 1}, {"type": "null"}]})");
  EXPECT_TRUE(texts.has(R"("a")") && texts.has("null"));
  EXPECT_FALSE(texts.has("1"));
  EXPECT_THAT(
      schemaProblem(R"({"oneOf": [{"type": "integer"}, {"type": "null"}, {"type": "number"}]})"),
      HasSubstr("1 and 3"));
}

}  // namespace
}  // namespace hearth::llm
