// SPDX-License-Identifier: Apache-2.0
#include "llm/tokenizer.h"

#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "llm/model_file.h"
#include "llm/stop_rules.h"
#include "llm/testing/small_tokenizer.h"
#include "llm/text_stream.h"

namespace hearth::llm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Tokenizer parse(const std::string& json) {
  auto tokenizer = Tokenizer::fromJson(json);
  if (!tokenizer) ADD_FAILURE() << tokenizer.error().toString();
  return tokenizer ? std::move(*tokenizer) : *Tokenizer::fromJson(smallTokenizerJson());
}

std::vector<int32_t> encode(const Tokenizer& tokenizer, std::string_view text,
                            SpecialTokens special = SpecialTokens::kAreText) {
  const auto tokens = tokenizer.encode(text, special);
  if (!tokens) ADD_FAILURE() << tokens.error().toString();
  return tokens.value_or(std::vector<int32_t>());
}

std::string problemOf(const std::string& json) {
  const auto tokenizer = Tokenizer::fromJson(json);
  return tokenizer ? "" : tokenizer.error().toString();
}

std::string replaced(std::string text, std::string_view old, std::string_view made) {
  const size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return at == std::string::npos ? text : text.replace(at, old.size(), made);
}

TEST(TokenizerTest, MergesHappenInTheOrderOfTheList) {
  const Tokenizer tokenizer = parse(smallTokenizerJson());
  EXPECT_THAT(encode(tokenizer, "hello hello"),
              ElementsAre(SmallTokens::kHello, SmallTokens::kSpaceHello));
  EXPECT_THAT(encode(tokenizer, "hel"), ElementsAre(29, SmallTokens::kA + 11));
  EXPECT_THAT(encode(tokenizer, ""), IsEmpty());
}

TEST(TokenizerTest, SpecialTokensInATextAreTextUnlessAsked) {
  std::string json = smallTokenizerJson();
  json = replaced(json, "\"Ġ\":2", R"("Ġ":2,"<":34,"|":35,">":36)");
  const Tokenizer tokenizer = parse(json);
  EXPECT_THAT(encode(tokenizer, "a<|end|>b", SpecialTokens::kAreParsed),
              ElementsAre(SmallTokens::kA, SmallTokens::kEnd, SmallTokens::kA + 1));
  EXPECT_THAT(encode(tokenizer, "<|end|>"), ElementsAre(34, 35, 7, 16, 6, 35, 36));
  EXPECT_EQ(tokenizer.decode(encode(tokenizer, "<|end|>")), "<|end|>");
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{3, 1, 4}), "ab");
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{3, 1, 4}, true), "a<|end|>b");
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{-1, 99}), "\uFFFD\uFFFD");
}

TEST(TokenizerTest, TextThatIsNoUtf8OrHasNoTokenIsRefused) {
  const Tokenizer tokenizer = parse(smallTokenizerJson());
  const auto invalid = tokenizer.encode("ab\xFF", SpecialTokens::kAreText);
  ASSERT_FALSE(invalid);
  EXPECT_THAT(invalid.error().toString(), HasSubstr("no UTF-8 at byte 2"));
  const auto missing = tokenizer.encode("A", SpecialTokens::kAreText);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().toString(), HasSubstr("no token for \"A\""));
}

TEST(TokenizerTest, ALongWordIsEncoded) {
  const Tokenizer tokenizer = parse(smallTokenizerJson());
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "hello";
  const std::vector<int32_t> tokens = encode(tokenizer, text);
  EXPECT_EQ(tokens, std::vector<int32_t>(20'000, SmallTokens::kHello));
}

TEST(TokenizerTest, WhatIsNotKnownIsRefusedByName) {
  const std::string json = smallTokenizerJson();
  EXPECT_THAT(problemOf(replaced(json, "\"BPE\"", "\"Unigram\"")), HasSubstr("model Unigram"));
  EXPECT_THAT(problemOf(replaced(json, "\"normalizer\":null", R"("normalizer":{"type":"Nmt"})")),
              HasSubstr("normalizer Nmt"));
  EXPECT_THAT(problemOf(replaced(json, "{\"type\":\"ByteLevel\",", "{\"type\":\"Bert\",")),
              HasSubstr("pre-tokenizer Bert"));
  EXPECT_THAT(problemOf(replaced(json, "{\"type\":\"ByteLevel\"}", "{\"type\":\"CTC\"}")),
              HasSubstr("decoder CTC"));
}

TEST(TokenizerTest, WrongFilesAreRefused) {
  const std::string json = smallTokenizerJson();
  EXPECT_THAT(problemOf(""), HasSubstr("while reading the tokenizer"));
  EXPECT_THAT(problemOf("{}"), HasSubstr("no model"));
  EXPECT_THAT(problemOf(json.substr(0, json.size() - 2)), HasSubstr("wrong at byte"));
  EXPECT_THAT(problemOf(replaced(json, "\"h e\"", "\"h q\"")), HasSubstr("no token"));
  EXPECT_THAT(problemOf(replaced(json, "\"a\":3", "\"a\":4")), HasSubstr("Two tokens"));
  EXPECT_THAT(problemOf(replaced(json, "\"a\":3", "\"a\":3000000000")), HasSubstr("number"));
  EXPECT_THAT(problemOf(replaced(json, "\"a\":3", "\"a\xFF\":3")), HasSubstr("no UTF-8"));
  EXPECT_THAT(problemOf(std::string(100'000, '[')), HasSubstr("expected"));
  EXPECT_THAT(problemOf("{\"x\":" + std::string(100'000, '[')), HasSubstr("nested too deeply"));
}

TEST(TokenizerTest, CharactersWithoutATokenBecomeBytes) {
  // As Llama 2's: spaces are U+2581, and bytes stand for what the vocabulary lacks.
  std::string vocabulary = R"("<unk>":0)";
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte)
    vocabulary += ",\"<0x" + std::string(1, kDigits[byte / 16]) + kDigits[byte % 16] +
                  ">\":" + std::to_string(byte + 1);
  vocabulary += R"(,"▁":257,"a":258,"▁a":259)";
  const Tokenizer tokenizer = parse(R"({"added_tokens":[],"normalizer":{"type":"Sequence",
    "normalizers":[{"type":"Prepend","prepend":"▁"},
                   {"type":"Replace","pattern":{"String":" "},"content":"▁"}]},
    "pre_tokenizer":null,"decoder":{"type":"Sequence","decoders":[
      {"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},
      {"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]},
    "model":{"type":"BPE","unk_token":"<unk>","byte_fallback":true,"merges":["▁ a"],"vocab":{)" +
                                    vocabulary + "}}}");
  const std::vector<int32_t> tokens = encode(tokenizer, "a aé");
  EXPECT_THAT(tokens, ElementsAre(259, 259, 0xC3 + 1, 0xA9 + 1));
  EXPECT_EQ(tokenizer.decode(tokens), "a aé");
}

TEST(TokenizerTest, MetaspaceStandsForSpacesAndDigitsStandAlone) {
  const Tokenizer tokenizer = parse(R"({"added_tokens":[],"normalizer":null,
    "pre_tokenizer":{"type":"Sequence","pretokenizers":[
      {"type":"Metaspace","replacement":"_","prepend_scheme":"always","split":true},
      {"type":"Digits","individual_digits":true}]},
    "decoder":{"type":"Metaspace","replacement":"_","prepend_scheme":"always","split":true},
    "model":{"type":"BPE","merges":["_ a","1 2"],
             "vocab":{"_":0,"a":1,"1":2,"2":3,"12":4,"_a":5}}})");
  const std::vector<int32_t> tokens = encode(tokenizer, "a 12");
  EXPECT_THAT(tokens, ElementsAre(5, 0, 2, 3));
  EXPECT_EQ(tokenizer.decode(tokens), "a 12");
}

TEST(TextStreamTest, CharactersComeWhole) {
  std::string json = smallTokenizerJson();
  // The bytes of é as tokens.
  json = replaced(json, "\"Ġ\":2", "\"Ġ\":2,\"Ã\":34,\"©\":35");
  const Tokenizer tokenizer = parse(json);
  TextStream stream(tokenizer, {});
  EXPECT_EQ(stream.add(SmallTokens::kA), "a");
  EXPECT_EQ(stream.add(34), "");
  EXPECT_EQ(stream.add(35), "é");
  EXPECT_EQ(stream.add(34), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
}

TEST(TextStreamTest, ATextEndsTheStreamEvenInPieces) {
  const Tokenizer tokenizer = parse(smallTokenizerJson());
  TextStream stream(tokenizer, {"bcd", ""});
  EXPECT_EQ(stream.add(SmallTokens::kA), "a");
  EXPECT_EQ(stream.add(SmallTokens::kA + 1), "");
  EXPECT_EQ(stream.add(SmallTokens::kA + 1), "b");
  EXPECT_EQ(stream.add(SmallTokens::kA + 2), "");
  EXPECT_FALSE(stream.isEnded());
  EXPECT_EQ(stream.add(SmallTokens::kA + 3), "");
  EXPECT_TRUE(stream.isEnded());
  EXPECT_EQ(stream.finish(), "");
}

TEST(StopRulesTest, SpecialTokensAreSequences) {
  std::string json = smallTokenizerJson();
  const Tokenizer tokenizer = parse(json);
  LlmMetadata metadata;
  metadata.stopTokens = {{{5, 6}, ""}, {{}, "a<|end|>"}, {{}, "hello"}};
  const auto rules = StopRules::ofModel(metadata, tokenizer);
  ASSERT_TRUE(rules) << rules.error().toString();
  EXPECT_THAT(rules->texts, ElementsAre("hello"));
  EXPECT_EQ(rules->endOf(std::vector<int32_t>{4, 5, 6}), 2);
  EXPECT_EQ(rules->endOf(std::vector<int32_t>{SmallTokens::kA, SmallTokens::kEnd}), 2);
  EXPECT_EQ(rules->endOf(std::vector<int32_t>{6, 5}), 0);
}

// The tokenizer of the model in the shared test data.
class RealTokenizerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const data = std::getenv("HEARTH_TEST_DATA");
    if (data == nullptr) GTEST_SKIP() << "HEARTH_TEST_DATA is not set.";
    folder_ = std::string(data) + "/data/llm/";
    auto file = readModelFile(folder_ + "smollm2-135m-instruct-i8.litertlm", "");
    ASSERT_TRUE(file) << file.error().toString();
    file_ = std::move(*file);
    ASSERT_TRUE(file_.tokenizer);
  }

  std::string folder_;
  ModelFile file_;
};

TEST_F(RealTokenizerTest, NumbersAndTextsAreThoseOfTokenizers) {
  std::ifstream lines(folder_ + "tokens.jsonl");
  size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto expected = nlohmann::json::parse(line);
    const std::vector<int32_t> tokens =
        encode(*file_.tokenizer, expected["text"].get<std::string>(), SpecialTokens::kAreParsed);
    ASSERT_EQ(tokens, expected["ids"].get<std::vector<int32_t>>()) << line;
    ASSERT_EQ(file_.tokenizer->decode(tokens, true), expected["decoded"].get<std::string>())
        << line;
  }
  EXPECT_EQ(count, 2000);
}

TEST_F(RealTokenizerTest, TheMetadataIsRead) {
  EXPECT_EQ(file_.part, "prefill_decode");
  EXPECT_EQ(file_.metadata.maxTokens, 2048);
  ASSERT_TRUE(file_.metadata.startToken);
  EXPECT_EQ(file_.metadata.startToken->text, "<|im_start|>");
  ASSERT_FALSE(file_.metadata.stopTokens.empty());
  EXPECT_THAT(file_.metadata.stopTokens[0].ids, ElementsAre(2));
  EXPECT_THAT(file_.metadata.chatTemplate, HasSubstr("{% for message in messages %}"));
}

}  // namespace
}  // namespace hearth::llm
