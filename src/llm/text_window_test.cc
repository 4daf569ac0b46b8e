// SPDX-License-Identifier: Apache-2.0
#include "llm/text_window.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "llm/generation.h"
#include "llm/model_file.h"
#include "llm/testing/small_tokenizer.h"

namespace hearth::llm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int32_t> numbers(size_t count) {
  std::vector<int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

TEST(TextWindowTest, TheFirstAndTheLastTokensStay) {
  EXPECT_THAT(shortenedText(numbers(10), 10, 0), ElementsAre(5, 6, 7, 8, 9));
  EXPECT_THAT(shortenedText(numbers(10), 10, 3), ElementsAre(0, 1, 2, 7, 8, 9));
  EXPECT_THAT(shortenedText(numbers(30), 10, 8), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 29));
  // There is room for one token more in any case.
  EXPECT_THAT(shortenedText(numbers(4), 4, 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(shortenedText(numbers(1), 1, 0), IsEmpty());
  EXPECT_THAT(shortenedText(numbers(5), 10, 0), ElementsAre(0, 1, 2, 3, 4));
}

// Each letter of a message is a token.
class FittedPromptTest : public ::testing::Test {
 protected:
  FittedPromptTest() {
    std::string json = smallTokenizerJson();
    json.replace(json.find("\"Ġ\":2"), 6, R"("Ġ":2,"0":34,"A":35)");
    tokenizer_ = Tokenizer::fromJson(json).value();
    LlmMetadata metadata;
    metadata.chatTemplate = "{% for m in messages %}{{ m.content }}{% endfor %}";
    prompt_ = ChatPrompt::create(metadata, *tokenizer_, "").value();
  }

  // The text that fits, and how many messages were dropped.
  std::pair<std::string, size_t> fit(const std::vector<ChatMessage>& messages, size_t context) {
    const auto fitted = fittedPrompt(*prompt_, messages, context, SpecialTokens::kAreText);
    if (!fitted) {
      ADD_FAILURE() << fitted.error().toString();
      return {};
    }
    return {tokenizer_->decode(fitted->tokens), fitted->dropped};
  }

  std::optional<Tokenizer> tokenizer_;
  std::optional<ChatPrompt> prompt_;
  const std::vector<ChatMessage> talk_ = {{"system", "ab"},    {"user", "cccc"},
                                          {"assistant", "dd"}, {"user", "ee"},
                                          {"assistant", "ff"}, {"user", "gg"}};
};

TEST_F(FittedPromptTest, WhatFitsStays) {
  EXPECT_EQ(fit(talk_, 15), std::pair(std::string("abccccddeeffgg"), size_t{0}));
}

TEST_F(FittedPromptTest, TheOldestMessagesAreDroppedUpToOneOfTheUser) {
  // Of a context of 14 tokens 2 are the system's, and 6 are half of the others.
  EXPECT_EQ(fit(talk_, 14), std::pair(std::string("abeeffgg"), size_t{2}));
  EXPECT_EQ(fit(talk_, 12), std::pair(std::string("abgg"), size_t{4}));
}

TEST_F(FittedPromptTest, TheUsersLastMessageStays) {
  EXPECT_EQ(fit(talk_, 3), std::pair(std::string("abgg"), size_t{4}));
  EXPECT_EQ(fit({{"user", "aaaa"}}, 3), std::pair(std::string("aaaa"), size_t{0}));
  // Nothing of the user's is there to begin with.
  EXPECT_EQ(fit({{"user", "aa"}, {"assistant", "bb"}}, 3),
            std::pair(std::string("aabb"), size_t{0}));
}

TEST_F(FittedPromptTest, WithoutASystemTheOthersFillHalfOfTheContext) {
  std::vector<ChatMessage> messages;
  for (int i = 0; i < 1000; ++i) messages.push_back({i % 2 == 0 ? "user" : "assistant", "a"});
  messages.push_back({"user", "b"});
  const auto [text, dropped] = fit(messages, 100);
  EXPECT_EQ(text, std::string(48, 'a') + "b");
  EXPECT_EQ(dropped, 952u);
}

// Greedy answers in a small context of the model in the shared test data.
class WindowTest : public ::testing::Test {
 protected:
  static constexpr size_t kContext = 24;
  static constexpr size_t kTokens = 30;

  void SetUp() override {
    const char* const data = std::getenv("HEARTH_TEST_DATA");
    if (data == nullptr) GTEST_SKIP() << "HEARTH_TEST_DATA is not set.";
    auto file =
        readModelFile(std::string(data) + "/data/llm/smollm2-135m-instruct-i8.litertlm", "");
    ASSERT_TRUE(file) << file.error().toString();
    file_ = *std::move(file);
    CompileOptions options;
    options.threads = 2;
    options.cache = HEARTH_CACHE_OFF;
    const auto model = CompiledModel::create(file_, options, Prefills::kWhenNeeded);
    ASSERT_TRUE(model) << model.error().toString();
    auto session = Session::create(*model, kContext);
    ASSERT_TRUE(session) << session.error().toString();
    session_ = *std::move(session);
    const auto prompt = file_.tokenizer->encode("1, 2, 3, 4, 5,", SpecialTokens::kAreText);
    ASSERT_TRUE(prompt) << prompt.error().toString();
    prompt_ = *prompt;
    ASSERT_LT(prompt_.size(), kContext);
  }

  ModelFile file_;
  std::unique_ptr<Session> session_;
  std::vector<int32_t> prompt_;
};

TEST_F(WindowTest, AnAnswerGoesOnAsIfTheTextHadAlwaysBeenThatOne) {
  ASSERT_TRUE(session_->append(prompt_));
  Sampler sampler({});
  Generation generation(session_.get(), *file_.tokenizer, &sampler,
                        {.maxTokens = kTokens, .keep = 0, .stops = {}});
  std::vector<std::vector<int32_t>> texts;  // before each token
  while (!generation.isEnded()) {
    const auto room = generation.makeRoom();
    ASSERT_TRUE(room) << room.error().toString();
    if (*room || texts.empty()) texts.push_back(session_->tokens());
    const auto text = generation.next();
    ASSERT_TRUE(text) << text.error().toString();
  }
  const std::vector<int32_t> chosen(generation.tokens().begin(), generation.tokens().end());
  EXPECT_EQ(generation.result().ending, Ending::kMaxTokens);
  ASSERT_EQ(chosen.size(), kTokens);
  ASSERT_EQ(texts.size(), 3u) << "two times the context is full";
  EXPECT_EQ(generation.result().dropped, 2 * (kContext / 2));
  // Each of these texts by itself, in a session that knows nothing.
  size_t next = 0;
  for (const std::vector<int32_t>& text : texts) {
    ASSERT_TRUE(session_->rewind(0));
    ASSERT_TRUE(session_->append(text));
    for (; next < kTokens && session_->tokens().size() < kContext; ++next) {
      const auto scores = session_->logits();
      ASSERT_TRUE(scores) << scores.error().toString();
      const auto likely = static_cast<int32_t>(std::ranges::max_element(*scores) - scores->begin());
      ASSERT_EQ(likely, chosen[next]) << next;
      ASSERT_TRUE(session_->append(std::span(&likely, 1)));
    }
  }
  EXPECT_EQ(next, kTokens);
}

TEST_F(WindowTest, TheFirstTokensStay) {
  ASSERT_TRUE(session_->append(prompt_));
  Sampler sampler({});
  constexpr size_t kKeep = 5;
  Generation generation(session_.get(), *file_.tokenizer, &sampler,
                        {.maxTokens = kTokens, .keep = kKeep, .stops = {}});
  while (!generation.isEnded()) ASSERT_TRUE(generation.next());
  const std::vector<int32_t>& text = session_->tokens();
  ASSERT_GT(text.size(), kKeep);
  EXPECT_TRUE(std::equal(text.begin(), text.begin() + kKeep, prompt_.begin()));
  const auto chosen = generation.tokens();
  ASSERT_EQ(chosen.size(), kTokens);
  EXPECT_TRUE(std::equal(text.rbegin(), text.rend() - kKeep, chosen.rbegin()));
}

TEST_F(WindowTest, WhatKeepsAllEndsWithTheContext) {
  for (const std::optional<size_t> keep : {std::optional<size_t>(), std::optional(kContext)}) {
    ASSERT_TRUE(session_->replace(prompt_));
    Sampler sampler({});
    const auto result =
        generate(session_.get(), *file_.tokenizer, &sampler, {.keep = keep, .stops = {}},
                 [](std::string_view) { return true; });
    ASSERT_TRUE(result) << result.error().toString();
    EXPECT_EQ(result->ending, Ending::kContext);
    EXPECT_EQ(result->tokens, kContext - prompt_.size());
    EXPECT_EQ(result->dropped, 0u);
  }
}

}  // namespace
}  // namespace hearth::llm
