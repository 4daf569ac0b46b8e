// SPDX-License-Identifier: Apache-2.0
// hearth_llm.h as a program uses it.
#include "hearth/hearth_llm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using ::testing::HasSubstr;

constexpr const char* kQuestion =
    R"([{"role": "system", "content": "You answer briefly."},
        {"role": "user", "content": "What is the capital of France?", "name": "Ada"}])";

// Frees errors, and holds the last one's sentence.
class Errors {
 public:
  Errors() = default;
  ~Errors() { clear(); }
  Errors(const Errors&) = delete;
  Errors& operator=(const Errors&) = delete;

  hearth_error** out() {
    clear();
    return &error_;
  }
  std::string sentence() {
    std::string text = error_ == nullptr ? "" : hearth_error_message(error_);
    clear();
    return text;
  }

 private:
  void clear() { hearth_error_free(std::exchange(error_, nullptr)); }

  hearth_error* error_ = nullptr;
};

class HearthLlmTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const char* const data = std::getenv("HEARTH_TEST_DATA");
    if (data == nullptr) return;
    path_ = new std::string(std::string(data) + "/data/llm/smollm2-135m-instruct-i8.litertlm");
    hearth_compile_options compile = HEARTH_COMPILE_OPTIONS_INIT;
    compile.cache = HEARTH_CACHE_OFF;
    compile.threads = 2;
    hearth_llm_options options = HEARTH_LLM_OPTIONS_INIT;
    options.compile = &compile;
    Errors errors;
    ASSERT_EQ(hearth_llm_open(path_->c_str(), &options, &model_, errors.out()), HEARTH_OK)
        << errors.sentence();
  }
  static void TearDownTestSuite() {
    hearth_llm_model_free(model_);
    delete path_;
  }
  void SetUp() override {
    if (model_ == nullptr) GTEST_SKIP() << "HEARTH_TEST_DATA is not set.";
    ASSERT_EQ(hearth_llm_session_create(model_, &session_, errors_.out()), HEARTH_OK)
        << errors_.sentence();
  }
  void TearDown() override { hearth_llm_session_free(session_); }

  std::vector<int32_t> tokenize(const std::string& text, uint32_t flags = 0) {
    int32_t* tokens = nullptr;
    size_t count = 0;
    EXPECT_EQ(hearth_llm_tokenize(model_, text.data(), text.size(), flags, &tokens, &count,
                                  errors_.out()),
              HEARTH_OK)
        << errors_.sentence();
    std::vector<int32_t> made(tokens, tokens + count);
    hearth_llm_tokens_free(tokens);
    return made;
  }
  std::string detokenize(const std::vector<int32_t>& tokens, uint32_t flags = 0) {
    char* text = nullptr;
    size_t bytes = 0;
    EXPECT_EQ(hearth_llm_detokenize(model_, tokens.data(), tokens.size(), flags, &text, &bytes,
                                    errors_.out()),
              HEARTH_OK)
        << errors_.sentence();
    std::string made(text, bytes);
    hearth_string_free(text);
    return made;
  }
  void ask(const char* messages) {
    int32_t* tokens = nullptr;
    size_t count = 0;
    ASSERT_EQ(hearth_llm_prompt_tokens(model_, messages, HEARTH_LLM_TO_ANSWER, &tokens, &count,
                                       errors_.out()),
              HEARTH_OK)
        << errors_.sentence();
    EXPECT_EQ(hearth_llm_session_replace(session_, tokens, count, nullptr, errors_.out()),
              HEARTH_OK)
        << errors_.sentence();
    hearth_llm_tokens_free(tokens);
  }
  hearth_llm_answer* begin(const hearth_llm_answer_options* options) {
    hearth_llm_answer* answer = nullptr;
    EXPECT_EQ(hearth_llm_answer_begin(session_, options, &answer, errors_.out()), HEARTH_OK)
        << errors_.sentence();
    return answer;
  }
  std::string rest(hearth_llm_answer* answer) {
    std::string all;
    const char* text = nullptr;
    size_t bytes = 0;
    do {
      EXPECT_EQ(hearth_llm_answer_next(answer, 0, &text, &bytes, errors_.out()), HEARTH_OK)
          << errors_.sentence();
      if (text != nullptr) all.append(text, bytes);
    } while (text != nullptr);
    return all;
  }
  std::string answerTo(const hearth_llm_answer_options* options) {
    hearth_llm_answer* const answer = begin(options);
    std::string text = rest(answer);
    hearth_llm_answer_free(answer);
    return text;
  }
  std::vector<int32_t> tokensOf(const hearth_llm_session* session) {
    size_t count = 0;
    const int32_t* const tokens = hearth_llm_session_tokens(session, &count);
    return {tokens, tokens + count};
  }
  static hearth_llm_answer_report reportOf(const hearth_llm_answer* answer) {
    hearth_llm_answer_report report{};
    report.size = sizeof(report);
    EXPECT_EQ(hearth_llm_answer_describe(answer, &report, nullptr), HEARTH_OK);
    return report;
  }

  static std::string* path_;
  static hearth_llm_model* model_;
  hearth_llm_session* session_ = nullptr;
  Errors errors_;
};
std::string* HearthLlmTest::path_ = nullptr;
hearth_llm_model* HearthLlmTest::model_ = nullptr;

TEST_F(HearthLlmTest, AQuestionIsAnswered) {
  ask(kQuestion);
  hearth_llm_answer_options options = HEARTH_LLM_ANSWER_OPTIONS_INIT;
  options.max_tokens = 40;
  hearth_llm_answer* const answer = begin(&options);
  EXPECT_THAT(rest(answer), HasSubstr("Paris"));
  const hearth_llm_answer_report report = reportOf(answer);
  EXPECT_EQ(report.ending, HEARTH_LLM_STOP);
  EXPECT_GT(report.tokens, 1u);
  EXPECT_GT(report.total_ms, report.first_token_ms);
  hearth_llm_answer_free(answer);

  // All but the last token are computed, and the session can be used further.
  hearth_llm_statistics statistics{};
  statistics.size = sizeof(statistics);
  EXPECT_EQ(hearth_llm_session_statistics(session_, &statistics, nullptr), HEARTH_OK);
  EXPECT_EQ(statistics.prefilled_tokens + statistics.decoded_tokens, tokensOf(session_).size() - 1);
  char* json = nullptr;
  ASSERT_EQ(hearth_llm_session_start_report_json(session_, &json, nullptr), HEARTH_OK);
  EXPECT_EQ(nlohmann::json::parse(json)["state"], "uncached");
  hearth_string_free(json);
}

TEST_F(HearthLlmTest, ThePromptIsTheTemplatesText) {
  char* text = nullptr;
  ASSERT_EQ(
      hearth_llm_prompt_text(model_, kQuestion, HEARTH_LLM_TO_ANSWER, &text, nullptr, nullptr),
      HEARTH_OK);
  const std::string prompt = text;
  hearth_string_free(text);
  EXPECT_THAT(prompt, HasSubstr("You answer briefly."));
  EXPECT_TRUE(prompt.ends_with("<|im_start|>assistant\n")) << prompt;
  ask(kQuestion);
  EXPECT_EQ(detokenize(tokensOf(session_), HEARTH_LLM_SHOW_SPECIAL), prompt);
}

TEST_F(HearthLlmTest, SpecialTokensInTextAreParsedOnRequest) {
  EXPECT_GT(tokenize("<|im_end|>").size(), 1u);
  const std::vector<int32_t> special = tokenize("<|im_end|>", HEARTH_LLM_PARSE_SPECIAL);
  ASSERT_EQ(special.size(), 1u);
  EXPECT_EQ(detokenize(special), "");
  EXPECT_EQ(detokenize(special, HEARTH_LLM_SHOW_SPECIAL), "<|im_end|>");
  EXPECT_EQ(detokenize(tokenize("Bären, 熊 and 🐻")), "Bären, 熊 and 🐻");
  EXPECT_EQ(detokenize({}), "");
}

TEST_F(HearthLlmTest, TextMayHaveZeros) {
  const std::string text("one\0two", 7);
  EXPECT_EQ(detokenize(tokenize(text)), text);
}

TEST_F(HearthLlmTest, TheFileSaysWhatItHas) {
  char* json = nullptr;
  ASSERT_EQ(hearth_llm_model_describe(model_, &json, nullptr), HEARTH_OK);
  const auto description = nlohmann::json::parse(json);
  hearth_string_free(json);
  EXPECT_EQ(description["vocabulary"], 49152);
  EXPECT_FALSE(description["stop_sequences"].empty());
  EXPECT_THAT(description["chat_template"].get<std::string>(), HasSubstr("im_start"));
}

TEST_F(HearthLlmTest, AForkAnswersByItself) {
  ask(kQuestion);
  hearth_llm_answer_options options = HEARTH_LLM_ANSWER_OPTIONS_INIT;
  options.temperature = 0;
  options.max_tokens = 8;
  hearth_llm_session* fork = nullptr;
  const float* scores = nullptr;
  size_t count = 0;
  ASSERT_EQ(hearth_llm_session_scores(session_, 0, &scores, &count, nullptr), HEARTH_OK);
  EXPECT_EQ(count, 49152u);
  ASSERT_EQ(hearth_llm_session_fork(session_, &fork, nullptr), HEARTH_OK);
  const std::string text = answerTo(&options);
  std::swap(session_, fork);
  EXPECT_EQ(answerTo(&options), text);
  hearth_llm_session_free(fork);
}

TEST_F(HearthLlmTest, AnAnswerEndsWhereItShould) {
  ask(kQuestion);
  const std::vector<int32_t> prompt = tokensOf(session_);
  hearth_llm_answer_options options = HEARTH_LLM_ANSWER_OPTIONS_INIT;
  options.temperature = 0;
  options.max_tokens = 2;
  hearth_llm_answer* answer = begin(&options);
  rest(answer);
  EXPECT_EQ(reportOf(answer).ending, HEARTH_LLM_MAX_TOKENS);
  EXPECT_EQ(reportOf(answer).tokens, 2u);
  hearth_llm_answer_free(answer);

  ASSERT_EQ(hearth_llm_session_rewind(session_, prompt.size(), nullptr), HEARTH_OK);
  const char* const stops[] = {"Paris"};
  options.max_tokens = 40;
  options.stops = stops;
  options.stop_count = 1;
  answer = begin(&options);
  EXPECT_THAT(rest(answer), ::testing::Not(HasSubstr("Paris")));
  EXPECT_EQ(reportOf(answer).ending, HEARTH_LLM_STOP);
  hearth_llm_answer_free(answer);
}

TEST_F(HearthLlmTest, AnotherThreadCancelsAnAnswer) {
  ask(kQuestion);
  hearth_llm_answer* const answer = begin(nullptr);
  std::thread canceller([&] { hearth_llm_answer_cancel(answer); });
  rest(answer);
  canceller.join();
  const hearth_llm_answer_report report = reportOf(answer);
  EXPECT_TRUE(report.ending == HEARTH_LLM_CANCELLED || report.ending == HEARTH_LLM_STOP);
  // What is cancelled before it begins chooses nothing.
  hearth_llm_answer_free(answer);
  hearth_llm_answer* const other = begin(nullptr);
  hearth_llm_answer_cancel(other);
  EXPECT_EQ(rest(other), "");
  EXPECT_EQ(reportOf(other).ending, HEARTH_LLM_CANCELLED);
  EXPECT_EQ(reportOf(other).tokens, 0u);
  hearth_llm_answer_free(other);
}

TEST_F(HearthLlmTest, ATimeoutLosesNothing) {
  ask(kQuestion);
  hearth_llm_answer_options options = HEARTH_LLM_ANSWER_OPTIONS_INIT;
  options.temperature = 0;
  options.max_tokens = 8;
  hearth_llm_session* fork = nullptr;
  ASSERT_EQ(hearth_llm_session_fork(session_, &fork, nullptr), HEARTH_OK);
  hearth_llm_answer* const answer = begin(&options);
  const char* text = nullptr;
  size_t bytes = 0;
  const hearth_status status = hearth_llm_answer_next(answer, 1, &text, &bytes, errors_.out());
  EXPECT_TRUE(status == HEARTH_MISSED_DEADLINE_TRANSIENT ||
              status == HEARTH_MISSED_DEADLINE_PERSISTENT);
  EXPECT_NE(errors_.sentence(), "");
  EXPECT_EQ(reportOf(answer).ending, HEARTH_LLM_RUNNING);
  const std::string late = rest(answer);
  hearth_llm_answer_free(answer);
  std::swap(session_, fork);
  EXPECT_EQ(answerTo(&options), late);
  hearth_llm_session_free(fork);
}

TEST_F(HearthLlmTest, TheCallerMayChangeTheScores) {
  ask(kQuestion);
  const std::vector<int32_t> wanted = tokenize("Bonn");
  hearth_llm_answer_options options = HEARTH_LLM_ANSWER_OPTIONS_INIT;
  options.max_tokens = static_cast<uint32_t>(wanted.size());
  hearth_llm_answer* const answer = begin(&options);
  std::string all;
  for (const int32_t token : wanted) {
    float* scores = nullptr;
    size_t count = 0;
    ASSERT_EQ(hearth_llm_answer_scores(answer, 0, &scores, &count, nullptr), HEARTH_OK);
    ASSERT_EQ(count, 49152u);
    std::fill(scores, scores + count, -std::numeric_limits<float>::infinity());
    scores[token] = 0;
    const char* text = nullptr;
    size_t bytes = 0;
    ASSERT_EQ(hearth_llm_answer_next(answer, 0, &text, &bytes, nullptr), HEARTH_OK);
    all.append(text, bytes);
  }
  EXPECT_EQ(all + rest(answer), "Bonn");
  float* scores = nullptr;
  size_t count = 1;
  EXPECT_EQ(hearth_llm_answer_scores(answer, 0, &scores, &count, nullptr), HEARTH_OK);
  EXPECT_EQ(count, 0u);
  hearth_llm_answer_free(answer);
}

TEST_F(HearthLlmTest, AnAnswerConformsToItsSchema) {
  ask(kQuestion);
  hearth_llm_answer_options options = HEARTH_LLM_ANSWER_OPTIONS_INIT;
  options.temperature = 0;
  options.json_schema =
      R"({"type": "object", "properties": {"free": {"type": "boolean"}}, "required": ["free"]})";
  const nlohmann::json answer = nlohmann::json::parse(answerTo(&options));
  EXPECT_TRUE(answer.is_object() && answer.size() == 1 && answer.at("free").is_boolean()) << answer;
  options.json_schema = R"({"type": "array", "uniqueItems": true})";
  hearth_llm_answer* refused = nullptr;
  EXPECT_EQ(hearth_llm_answer_begin(session_, &options, &refused, errors_.out()),
            HEARTH_UNSUPPORTED);
  options.json_schema = "{";
  EXPECT_EQ(hearth_llm_answer_begin(session_, &options, &refused, nullptr), HEARTH_BAD_DATA);
}

TEST_F(HearthLlmTest, CallsOfToolsAreObjects) {
  constexpr const char* kTools = R"([{"type": "function", "function": {"name": "weather",
      "parameters": {"type": "object", "properties": {"rain": {"type": "boolean"}},
                     "required": ["rain"]}}}])";
  constexpr const char* kTemplate =
      "{# <tool_call> arguments #}{% for tool in tools %}{{ tool | tojson }}{% endfor %}"
      "{% for message in messages %}{{ message.content }}{% endfor %}";
  hearth_llm_answer_options options = HEARTH_LLM_ANSWER_OPTIONS_INIT;
  options.tools = kTools;
  options.tool_choice = "weather";
  hearth_llm_answer* answer = nullptr;
  ask(kQuestion);
  // The model's own template asks for no form that is known.
  EXPECT_EQ(hearth_llm_answer_begin(session_, &options, &answer, errors_.out()),
            HEARTH_UNSUPPORTED);
  EXPECT_THAT(errors_.sentence(), HasSubstr("not known"));

  hearth_compile_options compile = HEARTH_COMPILE_OPTIONS_INIT;
  compile.cache = HEARTH_CACHE_OFF;
  compile.threads = 2;
  hearth_llm_options open = HEARTH_LLM_OPTIONS_INIT;
  open.compile = &compile;
  open.chat_template = kTemplate;
  hearth_llm_model* model = nullptr;
  ASSERT_EQ(hearth_llm_open(path_->c_str(), &open, &model, errors_.out()), HEARTH_OK)
      << errors_.sentence();
  hearth_llm_session* session = nullptr;
  ASSERT_EQ(hearth_llm_session_create(model, &session, errors_.out()), HEARTH_OK);
  std::swap(session_, session);
  char* json = nullptr;
  ASSERT_EQ(hearth_llm_model_describe(model, &json, nullptr), HEARTH_OK);
  EXPECT_EQ(nlohmann::json::parse(json)["tool_calls"], "hermes");
  hearth_string_free(json);

  const std::vector<int32_t> prompt = tokenize("What is the weather?");
  ASSERT_EQ(hearth_llm_session_replace(session_, prompt.data(), prompt.size(), nullptr, nullptr),
            HEARTH_OK);
  answer = begin(&options);
  EXPECT_GT(tokensOf(session_).size(), prompt.size()) << "what stands before a call is there";
  EXPECT_EQ(hearth_llm_answer_tool_call_count(answer), 0u);
  EXPECT_EQ(rest(answer), "");
  ASSERT_EQ(hearth_llm_answer_tool_call_count(answer), 1u);
  hearth_llm_tool_call call{};
  call.size = sizeof(call);
  ASSERT_EQ(hearth_llm_answer_tool_call(answer, 0, &call, errors_.out()), HEARTH_OK)
      << errors_.sentence();
  EXPECT_STREQ(call.name, "weather");
  EXPECT_TRUE(nlohmann::json::parse(call.arguments).at("rain").is_boolean()) << call.arguments;
  EXPECT_EQ(hearth_llm_answer_tool_call(answer, 1, &call, errors_.out()), HEARTH_BAD_DATA);
  EXPECT_EQ(hearth_llm_answer_tool_call(answer, 0, nullptr, nullptr), HEARTH_UNEXPECTED_NULL);
  hearth_llm_answer_free(answer);

  // What a program of the first version does not know is as it was.
  const size_t before = tokensOf(session_).size();
  options.size = offsetof(hearth_llm_answer_options, tools);
  options.max_tokens = 1;
  answer = begin(&options);
  EXPECT_EQ(tokensOf(session_).size(), before);
  hearth_llm_answer_free(answer);
  options.size = sizeof(options);

  for (const auto& [tools, choice, schema, sentence] :
       {std::tuple{static_cast<const char*>(nullptr), "required", static_cast<const char*>(nullptr),
                   "no tools"},
        {kTools, "clock", nullptr, "'clock'"},
        {"{}", "auto", nullptr, "no list"},
        {kTools, "weather", "{}", "JSON of a schema"}}) {
    options.tools = tools;
    options.tool_choice = choice;
    options.json_schema = schema;
    EXPECT_EQ(hearth_llm_answer_begin(session_, &options, &answer, errors_.out()), HEARTH_BAD_DATA);
    EXPECT_THAT(errors_.sentence(), HasSubstr(sentence));
  }
  EXPECT_EQ(tokensOf(session_).size(), before);
  hearth_llm_session_free(session);
  hearth_llm_session_free(std::exchange(session_, nullptr));
  hearth_llm_model_free(model);
}

TEST_F(HearthLlmTest, ASessionThatAnswersIsNotChanged) {
  EXPECT_EQ(hearth_llm_answer_begin(session_, nullptr, nullptr, nullptr), HEARTH_UNEXPECTED_NULL);
  hearth_llm_answer* answer = nullptr;
  EXPECT_EQ(hearth_llm_answer_begin(session_, nullptr, &answer, errors_.out()), HEARTH_BAD_STATE);
  EXPECT_THAT(errors_.sentence(), HasSubstr("empty"));
  ask(kQuestion);
  answer = begin(nullptr);
  hearth_llm_answer* second = nullptr;
  EXPECT_EQ(hearth_llm_answer_begin(session_, nullptr, &second, nullptr), HEARTH_BAD_STATE);
  const int32_t token = 5;
  EXPECT_EQ(hearth_llm_session_append(session_, &token, 1, nullptr), HEARTH_BAD_STATE);
  EXPECT_EQ(hearth_llm_session_replace(session_, &token, 1, nullptr, nullptr), HEARTH_BAD_STATE);
  EXPECT_EQ(hearth_llm_session_rewind(session_, 0, nullptr), HEARTH_BAD_STATE);
  hearth_llm_answer_free(answer);
  EXPECT_EQ(hearth_llm_session_append(session_, &token, 1, nullptr), HEARTH_OK);
  // Handles are freed in any order.
  answer = begin(nullptr);
  hearth_llm_session_free(std::exchange(session_, nullptr));
  const char* text = nullptr;
  size_t bytes = 0;
  EXPECT_EQ(hearth_llm_answer_next(answer, 0, &text, &bytes, nullptr), HEARTH_OK);
  hearth_llm_answer_free(answer);
}

TEST_F(HearthLlmTest, WhatIsWrongIsSaid) {
  const int32_t wrong = 49152;
  EXPECT_EQ(hearth_llm_session_append(session_, &wrong, 1, errors_.out()), HEARTH_BAD_DATA);
  EXPECT_THAT(errors_.sentence(), HasSubstr("49152"));
  char* text = nullptr;
  for (const auto& [messages, sentence] :
       {std::pair{"[{\"role\": \"robot\", \"content\": \"\"}]", "'robot'"},
        {"{}", "JSON"},
        {"[{\"role\": \"user\", \"content\": 5}]", "JSON"},
        {"[] []", "JSON"}}) {
    EXPECT_EQ(hearth_llm_prompt_text(model_, messages, 0, &text, nullptr, errors_.out()),
              HEARTH_BAD_DATA)
        << messages;
    EXPECT_THAT(errors_.sentence(), HasSubstr(sentence)) << messages;
  }
  EXPECT_EQ(
      hearth_llm_prompt_text(model_, "[]", HEARTH_LLM_SHOW_SPECIAL, &text, nullptr, errors_.out()),
      HEARTH_BAD_DATA);
  EXPECT_THAT(errors_.sentence(), HasSubstr("flags"));
  ask(kQuestion);
  hearth_llm_answer* answer = nullptr;
  hearth_llm_answer_options options = HEARTH_LLM_ANSWER_OPTIONS_INIT;
  options.top_p = 1.5F;
  EXPECT_EQ(hearth_llm_answer_begin(session_, &options, &answer, errors_.out()), HEARTH_BAD_DATA);
  EXPECT_THAT(errors_.sentence(), HasSubstr("top_p 1.5"));
  options = HEARTH_LLM_ANSWER_OPTIONS_INIT;
  options.size = 0;
  EXPECT_EQ(hearth_llm_answer_begin(session_, &options, &answer, nullptr), HEARTH_BAD_DATA);
  hearth_compile_options compile = HEARTH_COMPILE_OPTIONS_INIT;
  compile.signature = "decode";
  hearth_llm_options open = HEARTH_LLM_OPTIONS_INIT;
  open.compile = &compile;
  hearth_llm_model* model = nullptr;
  EXPECT_EQ(hearth_llm_open(path_->c_str(), &open, &model, errors_.out()), HEARTH_BAD_DATA);
  EXPECT_THAT(errors_.sentence(), HasSubstr("signature"));
}

// What one session has computed of a marked beginning, another one finds.
TEST_F(HearthLlmTest, MarkedBeginningsAreKept) {
  const std::string store =
      ::testing::TempDir() + "hearth-llm-prefixes-" + std::to_string(getpid());
  hearth_compile_options compile = HEARTH_COMPILE_OPTIONS_INIT;
  compile.store = store.c_str();
  hearth_llm_options options = HEARTH_LLM_OPTIONS_INIT;
  options.compile = &compile;
  std::vector<int32_t> text = tokenize(
      "<|im_start|>You are a careful assistant who knows a lot about trees, rivers, mountains and "
      "the people who live near them, and answers in one short sentence.",
      HEARTH_LLM_PARSE_SPECIAL);
  const size_t marked = text.size();
  const std::vector<int32_t> question = tokenize(" What is a birch?");
  text.insert(text.end(), question.begin(), question.end());
  std::vector<std::vector<float>> scores;
  std::vector<uint64_t> stored;
  for (const int32_t prefixes :
       {HEARTH_LLM_PREFIXES_MARKED, HEARTH_LLM_PREFIXES_MARKED, HEARTH_LLM_PREFIXES_OFF}) {
    options.prefixes = prefixes;
    hearth_llm_model* model = nullptr;
    ASSERT_EQ(hearth_llm_open(path_->c_str(), &options, &model, errors_.out()), HEARTH_OK)
        << errors_.sentence();
    hearth_llm_session* session = nullptr;
    ASSERT_EQ(hearth_llm_session_create(model, &session, errors_.out()), HEARTH_OK)
        << errors_.sentence();
    ASSERT_EQ(hearth_llm_session_append(session, text.data(), text.size(), nullptr), HEARTH_OK);
    EXPECT_EQ(hearth_llm_session_mark_prefix(session, text.size() + 1, nullptr), HEARTH_BAD_DATA);
    ASSERT_EQ(hearth_llm_session_mark_prefix(session, marked, nullptr), HEARTH_OK);
    const float* made = nullptr;
    size_t count = 0;
    ASSERT_EQ(hearth_llm_session_scores(session, 0, &made, &count, nullptr), HEARTH_OK);
    scores.emplace_back(made, made + count);
    hearth_llm_statistics statistics{};
    statistics.size = sizeof(statistics);
    ASSERT_EQ(hearth_llm_session_statistics(session, &statistics, nullptr), HEARTH_OK);
    stored.push_back(statistics.stored_tokens);
    hearth_llm_session_free(session);
    hearth_llm_model_free(model);
  }
  EXPECT_EQ(stored, (std::vector<uint64_t>{0, marked, 0}));
  EXPECT_EQ(scores[1], scores[0]);
  EXPECT_EQ(scores[2], scores[0]);
  // Plans may still be written.
  EXPECT_EQ(hearth_flush(0, nullptr), HEARTH_OK);
  std::filesystem::remove_all(store);
}

// Of a text that is marked as a whole, the next token's scores are kept, too.
TEST_F(HearthLlmTest, ATextThatWasThereNeedsNoCompiledModel) {
  const std::string store = ::testing::TempDir() + "hearth-llm-scores-" + std::to_string(getpid());
  hearth_compile_options compile = HEARTH_COMPILE_OPTIONS_INIT;
  compile.store = store.c_str();
  hearth_llm_options options = HEARTH_LLM_OPTIONS_INIT;
  options.compile = &compile;
  const std::vector<int32_t> text =
      tokenize("<|im_start|>Birches, oaks and limes are", HEARTH_LLM_PARSE_SPECIAL);
  std::vector<std::vector<int32_t>> answers;
  std::vector<uint64_t> stored;
  for (const int32_t prefixes :
       {HEARTH_LLM_PREFIXES_MARKED, HEARTH_LLM_PREFIXES_MARKED, HEARTH_LLM_PREFIXES_OFF}) {
    options.prefixes = prefixes;
    hearth_llm_model* model = nullptr;
    ASSERT_EQ(hearth_llm_open(path_->c_str(), &options, &model, errors_.out()), HEARTH_OK)
        << errors_.sentence();
    hearth_llm_session* session = nullptr;
    EXPECT_EQ(hearth_llm_session_create_with(model, text.data(), text.size(), text.size() + 1,
                                             &session, nullptr),
              HEARTH_BAD_DATA);
    ASSERT_EQ(hearth_llm_session_create_with(model, text.data(), text.size(), text.size(), &session,
                                             errors_.out()),
              HEARTH_OK)
        << errors_.sentence();
    EXPECT_EQ(hearth_llm_session_context(session), 2048u);
    hearth_llm_answer_options answering = HEARTH_LLM_ANSWER_OPTIONS_INIT;
    answering.max_tokens = 4;
    answering.temperature = 0;
    hearth_llm_answer* answer = nullptr;
    ASSERT_EQ(hearth_llm_answer_begin(session, &answering, &answer, errors_.out()), HEARTH_OK)
        << errors_.sentence();
    const char* piece = "";
    size_t bytes = 0;
    while (piece != nullptr)
      ASSERT_EQ(hearth_llm_answer_next(answer, 0, &piece, &bytes, errors_.out()), HEARTH_OK)
          << errors_.sentence();
    hearth_llm_answer_free(answer);
    answers.push_back(tokensOf(session));
    hearth_llm_statistics statistics{};
    statistics.size = sizeof(statistics);
    ASSERT_EQ(hearth_llm_session_statistics(session, &statistics, nullptr), HEARTH_OK);
    stored.push_back(statistics.stored_tokens);
    char* report = nullptr;
    ASSERT_EQ(hearth_llm_session_start_report_json(session, &report, errors_.out()), HEARTH_OK)
        << errors_.sentence();
    hearth_string_free(report);
    hearth_llm_session_free(session);
    hearth_llm_model_free(model);
  }
  EXPECT_EQ(stored, (std::vector<uint64_t>{0, text.size(), 0}));
  EXPECT_EQ(answers[0].size(), text.size() + 4);
  EXPECT_EQ(answers[1], answers[0]);
  EXPECT_EQ(answers[2], answers[0]);
  // Plans may still be written.
  EXPECT_EQ(hearth_flush(0, nullptr), HEARTH_OK);
  std::filesystem::remove_all(store);
}

TEST(HearthLlmNullTest, NullPointersAreErrors) {
  hearth_llm_model* model = nullptr;
  hearth_llm_session* session = nullptr;
  hearth_llm_answer* answer = nullptr;
  int32_t* tokens = nullptr;
  size_t count = 5;
  char* text = nullptr;
  const char* piece = nullptr;
  const float* scores = nullptr;
  Errors errors;
  EXPECT_EQ(hearth_llm_open(nullptr, nullptr, &model, errors.out()), HEARTH_UNEXPECTED_NULL);
  EXPECT_THAT(errors.sentence(), HasSubstr("path"));
  EXPECT_EQ(hearth_llm_open("/nowhere/model.litertlm", nullptr, &model, errors.out()),
            HEARTH_NOT_FOUND);
  EXPECT_THAT(errors.sentence(), HasSubstr("/nowhere/model.litertlm"));
  EXPECT_EQ(hearth_llm_model_describe(nullptr, &text, nullptr), HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_llm_tokenize(nullptr, "", 0, 0, &tokens, &count, nullptr),
            HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_llm_detokenize(nullptr, nullptr, 0, 0, &text, nullptr, nullptr),
            HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_llm_prompt_text(nullptr, "[]", 0, &text, nullptr, nullptr),
            HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_llm_prompt_tokens(nullptr, "[]", 0, &tokens, &count, nullptr),
            HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_llm_session_create(nullptr, &session, nullptr), HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_llm_session_create_with(nullptr, nullptr, 0, 0, &session, nullptr),
            HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_llm_session_fork(nullptr, &session, nullptr), HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_llm_session_tokens(nullptr, &count), nullptr);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(hearth_llm_session_context(nullptr), 0u);
  EXPECT_EQ(hearth_llm_session_append(nullptr, nullptr, 0, nullptr), HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_llm_session_replace(nullptr, nullptr, 0, nullptr, nullptr),
            HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_llm_session_rewind(nullptr, 0, nullptr), HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_llm_session_mark_prefix(nullptr, 0, nullptr), HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_llm_session_scores(nullptr, 0, &scores, &count, nullptr),
            HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_llm_session_statistics(nullptr, nullptr, nullptr), HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_llm_session_start_report_json(nullptr, &text, nullptr), HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_llm_answer_begin(nullptr, nullptr, &answer, nullptr), HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_llm_answer_next(nullptr, 0, &piece, &count, nullptr), HEARTH_UNEXPECTED_NULL);
  float* changeable = nullptr;
  EXPECT_EQ(hearth_llm_answer_scores(nullptr, 0, &changeable, &count, nullptr),
            HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_llm_answer_describe(nullptr, nullptr, nullptr), HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_llm_answer_tool_call_count(nullptr), 0u);
  EXPECT_EQ(hearth_llm_answer_tool_call(nullptr, 0, nullptr, nullptr), HEARTH_UNEXPECTED_NULL);
  hearth_llm_answer_cancel(nullptr);
  hearth_llm_answer_free(nullptr);
  hearth_llm_session_free(nullptr);
  hearth_llm_model_free(nullptr);
  hearth_llm_tokens_free(nullptr);
}

}  // namespace
