// SPDX-License-Identifier: Apache-2.0
#include "llm/json_constraint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "llm/chat_template.h"
#include "llm/testing/small_tokenizer.h"

namespace hearth::llm {
namespace {

constexpr const char* kSchema = R"({"type": "object", "required": ["a"], "properties": {
    "a": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "null"}}]},
    "hello": {"enum": ["hell", "he"]}}})";

// With the characters of JSON and tokens that go over the ends of its values.
Tokenizer jsonTokenizer() {
  std::string json = smallTokenizerJson();
  json.replace(json.find("\"Ġ\":2"), 6,
               R"-("Ġ":2,"{":34,"}":35,"\"":36,":":37,",":38,"[":39,"]":40,"\\":41,"1":42)-");
  return Tokenizer::fromJson(json).value();
}

class JsonConstraintTest : public ::testing::Test {
 protected:
  JsonConstraint make(const char* schema) {
    schema_ = std::make_shared<const JsonSchema>(JsonSchema::parse(schema).value());
    return {schema_, order_, tokenizer_};
  }
  std::vector<float> restricted(JsonConstraint* constraint) {
    std::vector<float> scores(tokenizer_.size(), 1);
    const Status status = constraint->restrict(scores, std::vector{SmallTokens::kEnd});
    EXPECT_TRUE(status) << status.error().toString();
    return scores;
  }

  const Tokenizer tokenizer_ = jsonTokenizer();
  const std::shared_ptr<const TokenOrder> order_ = std::make_shared<const TokenOrder>(tokenizer_);
  std::shared_ptr<const JsonSchema> schema_;
};

TEST_F(JsonConstraintTest, ExactlyTheTokensThatGoOnArePossible) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 30; ++trial) {
    JsonConstraint constraint = make(kSchema);
    JsonAutomaton automaton(schema_);
    JsonAutomaton::State state = automaton.begin();
    std::string text;
    while (!constraint.isComplete() && text.size() < 300) {
      const std::vector<float> scores = restricted(&constraint);
      std::vector<int32_t> possible;
      for (int32_t token = 0; token < static_cast<int32_t>(scores.size()); ++token) {
        std::string bytes;
        bool isFirst = false;
        tokenizer_.appendBytes(token, &isFirst, &bytes);
        JsonAutomaton::State behind = state;
        for (const char c : bytes) behind = automaton.next(behind, static_cast<uint8_t>(c));
        const bool isRight = !bytes.empty() && behind != JsonAutomaton::kWrong;
        ASSERT_EQ(scores[static_cast<size_t>(token)] == 1, isRight)
            << tokenizer_.text(token) << " behind " << text;
        if (isRight) possible.push_back(token);
      }
      ASSERT_FALSE(possible.empty()) << text;
      const int32_t token = possible[random() % possible.size()];
      ASSERT_TRUE(constraint.accept(token));
      std::string bytes;
      bool isFirst = false;
      tokenizer_.appendBytes(token, &isFirst, &bytes);
      for (const char c : bytes) state = automaton.next(state, static_cast<uint8_t>(c));
      text += bytes;
    }
    EXPECT_EQ(templateValueOfJson(text).has_value(), constraint.isComplete()) << text;
  }
}

TEST_F(JsonConstraintTest, TokensThatEndAreOnlyPossibleAtTheEnd) {
  JsonConstraint constraint = make(R"({"type": "integer"})");
  EXPECT_TRUE(std::isinf(restricted(&constraint)[SmallTokens::kEnd]));
  EXPECT_FALSE(constraint.accept(SmallTokens::kEnd)) << "it stands for no text";
  EXPECT_FALSE(constraint.accept(SmallTokens::kHello));
  ASSERT_TRUE(constraint.accept(42));
  EXPECT_FALSE(constraint.isComplete()) << "more digits may come";
  EXPECT_EQ(restricted(&constraint)[SmallTokens::kEnd], 1);
}

TEST_F(JsonConstraintTest, WhereNoTokenCanComeThatIsSaid) {
  // The model has scores for special tokens only.
  JsonConstraint constraint = make(R"({"const": true})");
  std::vector<float> scores(2, 1);
  const Status status = constraint.restrict(scores, {});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(scores, std::vector<float>(2, 1));
}

}  // namespace
}  // namespace hearth::llm
