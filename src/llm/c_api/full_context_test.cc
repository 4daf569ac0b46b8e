// SPDX-License-Identifier: Apache-2.0
// Texts that outgrow the context, through hearth_llm.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "hearth/hearth_llm.h"

namespace {

constexpr uint32_t kContext = 48;

class FullContextTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const data = std::getenv("HEARTH_TEST_DATA");
    if (data == nullptr) GTEST_SKIP() << "HEARTH_TEST_DATA is not set.";
    const std::string path = std::string(data) + "/data/llm/smollm2-135m-instruct-i8.litertlm";
    hearth_compile_options compile = HEARTH_COMPILE_OPTIONS_INIT;
    compile.cache = HEARTH_CACHE_OFF;
    compile.threads = 2;
    hearth_llm_options options = HEARTH_LLM_OPTIONS_INIT;
    options.compile = &compile;
    options.context = kContext;
    ASSERT_EQ(hearth_llm_open(path.c_str(), &options, &model_, nullptr), HEARTH_OK);
    ASSERT_EQ(hearth_llm_session_create(model_, &session_, nullptr), HEARTH_OK);
  }
  void TearDown() override {
    hearth_llm_session_free(session_);
    hearth_llm_model_free(model_);
  }

  std::vector<int32_t> text() const {
    size_t count = 0;
    const int32_t* const tokens = hearth_llm_session_tokens(session_, &count);
    return {tokens, tokens + count};
  }

  hearth_llm_model* model_ = nullptr;
  hearth_llm_session* session_ = nullptr;
};

TEST_F(FullContextTest, AnAnswerGoesOnWithoutTheOldestTokens) {
  const std::vector<int32_t> prompt(kContext - 2, 100);
  ASSERT_EQ(hearth_llm_session_append(session_, prompt.data(), prompt.size(), nullptr), HEARTH_OK);
  hearth_llm_answer_options options = HEARTH_LLM_ANSWER_OPTIONS_INIT;
  options.temperature = 0;
  options.max_tokens = 6;
  options.when_full = HEARTH_LLM_DROP_OLDEST;
  options.keep = kContext;
  hearth_llm_answer* answer = nullptr;
  hearth_error* error = nullptr;
  EXPECT_EQ(hearth_llm_answer_begin(session_, &options, &answer, &error), HEARTH_BAD_DATA);
  EXPECT_THAT(hearth_error_message(error), ::testing::HasSubstr("leave no room"));
  hearth_error_free(error);
  options.when_full = 2;
  EXPECT_EQ(hearth_llm_answer_begin(session_, &options, &answer, nullptr), HEARTH_BAD_DATA);
  options.when_full = HEARTH_LLM_DROP_OLDEST;
  options.keep = 4;
  ASSERT_EQ(hearth_llm_answer_begin(session_, &options, &answer, nullptr), HEARTH_OK);
  const char* piece = nullptr;
  size_t bytes = 0;
  size_t count = 0;
  size_t steps = 0;
  do {
    ASSERT_EQ(hearth_llm_answer_next(answer, 0, &piece, &bytes, nullptr), HEARTH_OK);
    hearth_llm_answer_tokens(answer, &count);
    // The last two steps choose none: one ends the text, and the other has nothing.
    steps = std::min<size_t>(steps + 1, options.max_tokens);
    EXPECT_EQ(count, steps);
  } while (piece != nullptr);
  hearth_llm_answer_report report{};
  report.size = sizeof(report);
  ASSERT_EQ(hearth_llm_answer_describe(answer, &report, nullptr), HEARTH_OK);
  EXPECT_NE(report.ending, HEARTH_LLM_CONTEXT);
  const int32_t* const chosen = hearth_llm_answer_tokens(answer, &count);
  EXPECT_EQ(count, report.tokens);
  const std::vector<int32_t> now = text();
  // Of 44 tokens behind the first four 22 stayed, and then came those that the answer still got.
  EXPECT_EQ(now.size(), 4 + 22 + count - 2);
  EXPECT_TRUE(std::equal(chosen, chosen + count, now.end() - static_cast<ptrdiff_t>(count)));
  hearth_llm_answer_free(answer);
  EXPECT_EQ(hearth_llm_answer_tokens(nullptr, &count), nullptr);
  EXPECT_EQ(count, 0u);
}

TEST_F(FullContextTest, APromptIsMadeOfTheMessagesThatFit) {
  std::string messages = R"([{"role": "system", "content": "You answer briefly."})";
  for (int i = 0; i < 6; ++i)
    messages += R"(,{"role": "user", "content": "Hello!"},{"role": "assistant", "content": "Hi!"})";
  messages += R"(,{"role": "user", "content": "Bye!"}])";
  int32_t* tokens = nullptr;
  size_t count = 0;
  size_t dropped = 99;
  ASSERT_EQ(hearth_llm_prompt_fitting_tokens(model_, messages.c_str(), 2000, 0, &tokens, &count,
                                             &dropped, nullptr),
            HEARTH_OK);
  EXPECT_EQ(dropped, 0u);
  EXPECT_GT(count, kContext);
  hearth_llm_tokens_free(tokens);
  ASSERT_EQ(hearth_llm_prompt_fitting_tokens(model_, messages.c_str(), kContext, 0, &tokens, &count,
                                             &dropped, nullptr),
            HEARTH_OK);
  EXPECT_GT(dropped, 0u);
  EXPECT_EQ(dropped % 2, 0u) << "up to a message of the user";
  EXPECT_LT(count, kContext);
  EXPECT_EQ(hearth_llm_session_append(session_, tokens, count, nullptr), HEARTH_OK);
  hearth_llm_tokens_free(tokens);
}

}  // namespace
