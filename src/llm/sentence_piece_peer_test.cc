// SPDX-License-Identifier: Apache-2.0
// Tokens and texts are those of the library SentencePiece, with models that it trains here.
#include <gtest/gtest.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "llm/tokenizer.h"
#include "llm/utf8.h"

namespace hearth::llm {
namespace {

// Words of invented syllables in several scripts, and between them what tokenizers treat apart. The
// same at every run.
class Lines {
 public:
  explicit Lines(uint32_t seed) : random_(seed) {}

  // `isStrange`: with characters that no other line has.
  std::string next(bool isStrange) {
    std::string line;
    for (uint32_t count = 1 + below(12); count > 0; --count) {
      addWord(&line);
      if (below(4) == 0) line += kMarks[below(std::size(kMarks))];
      if (isStrange && below(6) == 0) appendCharacter(strange(), &line);
      line += below(8) == 0 ? "  " : " ";
    }
    return line;
  }

 private:
  static constexpr std::pair<uint32_t, uint32_t> kScripts[] = {
      {'a', 26},   {'a', 26},    {0xE0, 23},   {0x3B1, 24},  {0x430, 32},  {0x5D0, 26},
      {0x915, 30}, {0x3041, 80}, {0x4E00, 60}, {0xAC00, 60}, {0xFF21, 26}, {0x2460, 20}};
  static constexpr const char* kMarks[] = {",",          ".",          "!",      "1",      "20",
                                           "\t",         "\u3000",     "\u00A0", "\u00BD", "\uFB01",
                                           "e\u0301",    "<turn_end>", "<b>",    "\u2581", "abab",
                                           "\U0001F600", "   ",        "\n",     "\n\n"};

  uint32_t below(size_t end) { return static_cast<uint32_t>(random_() % end); }

  void addWord(std::string* line) {
    const auto [first, count] = kScripts[below(std::size(kScripts))];
    for (uint32_t size = 1 + below(6); size > 0; --size)
      // Small numbers are more frequent, so that there are words to find.
      appendCharacter(first + below(1 + below(count)), line);
  }

  uint32_t strange() {
    const uint32_t code = 0xA1 + below(0x2FFFF);
    return code >= 0xD800 && code < 0xE000 ? 0x2603 : code;
  }

  std::mt19937 random_;
};

using Options = std::unordered_map<std::string, std::string>;

class SentencePiecePeerTest : public ::testing::TestWithParam<Options> {};

TEST_P(SentencePiecePeerTest, TokensAndTextsAreItsOwn) {
  std::vector<std::string> sentences;
  Lines known(1);
  for (int i = 0; i < 4000; ++i) sentences.push_back(known.next(false));
  Options options = {{"vocab_size", "1500"},
                     {"hard_vocab_limit", "false"},
                     {"character_coverage", "0.98"},
                     {"num_threads", "1"},
                     {"minloglevel", "3"}};
  options.insert(GetParam().begin(), GetParam().end());
  std::string message;
  const auto trained = sentencepiece::SentencePieceTrainer::Train(options, sentences, &message);
  ASSERT_TRUE(trained.ok()) << trained.ToString();
  sentencepiece::SentencePieceProcessor peer;
  ASSERT_TRUE(peer.LoadFromSerializedProto(message).ok());
  const auto tokenizer = Tokenizer::fromSentencePiece(
      {reinterpret_cast<const uint8_t*>(message.data()), message.size()});
  ASSERT_TRUE(tokenizer) << tokenizer.error().toString();
  ASSERT_EQ(tokenizer->size(), static_cast<size_t>(peer.GetPieceSize()));
  const auto score = [&](const std::vector<int>& tokens) {
    double sum = 0;
    for (const int token : tokens) sum += peer.GetScore(token);
    return sum;
  };
  Lines lines(2);
  int ties = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string text = lines.next(true);
    std::vector<int> expected;
    ASSERT_TRUE(peer.Encode(text, &expected).ok());
    const auto tokens = tokenizer->encode(text, SpecialTokens::kAreParsed);
    ASSERT_TRUE(tokens) << tokens.error().toString();
    if (*tokens != expected) {
      // Two divisions with the same sum: version 0.2.0 compares sums in double precision with
      // rounded ones, 0.2.3 compares rounded ones as we do.
      ASSERT_NEAR(score(*tokens), score(expected), 1e-4) << text;
      ++ties;
    }
    std::string decoded;
    ASSERT_TRUE(peer.Decode(expected, &decoded).ok());
    ASSERT_EQ(tokenizer->decode(*tokens, true), decoded) << text;
  }
  EXPECT_LE(ties, GetParam().at("model_type") == "bpe" ? 0 : 60);
}

INSTANTIATE_TEST_SUITE_P(
    Models, SentencePiecePeerTest,
    ::testing::Values(Options{{"model_type", "unigram"}},
                      Options{{"model_type", "unigram"},
                              {"byte_fallback", "true"},
                              {"normalization_rule_name", "nfkc_cf"},
                              {"remove_extra_whitespaces", "false"},
                              {"user_defined_symbols", "<turn_end>,<b>,\n,ab"}},
                      Options{{"model_type", "unigram"}, {"split_by_whitespace", "false"}},
                      Options{{"model_type", "bpe"}},
                      Options{{"model_type", "bpe"},
                              {"byte_fallback", "true"},
                              {"normalization_rule_name", "identity"},
                              {"add_dummy_prefix", "false"},
                              {"remove_extra_whitespaces", "false"},
                              {"split_digits", "true"},
                              {"user_defined_symbols", "<turn_end>,<b>,\n,\n\n,\u2581\u2581"}},
                      Options{{"model_type", "bpe"}, {"treat_whitespace_as_suffix", "true"}}),
    [](const auto& info) {
      std::string name = info.param.at("model_type");
      for (const auto& [key, value] : info.param)
        if (value == "true" || value == "false" || value == "identity") name += "_" + key;
      std::erase(name, '-');
      return name;
    });

}  // namespace
}  // namespace hearth::llm
