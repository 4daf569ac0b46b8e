// SPDX-License-Identifier: Apache-2.0
// Tests of sessions with the model in the shared test data.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "llm/model_file.h"
#include "llm/prefix_cache.h"
#include "llm/session.h"
#include "llm/thrown.h"

namespace hearth::llm {

inline int32_t mostLikely(std::span<const float> logits) {
  return static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin());
}

// The model in the shared test data, made ready once.
class SessionTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const char* const data = std::getenv("HEARTH_TEST_DATA");
    if (data == nullptr) return;
    folder_ = new std::string(std::string(data) + "/data/llm/");
    const std::string path = *folder_ + "smollm2-135m-instruct-i8.litertlm";
    auto file = readModelFile(path, "");
    ASSERT_TRUE(file) << file.error().toString();
    file_ = new ModelFile(std::move(*file));
    SessionOptions options;
    options.compile.threads = 2;
    options.compile.cache = HEARTH_CACHE_OFF;
    auto session = returned([&]() -> Result<std::unique_ptr<Session>> {
      return Session::create(Model(path, file_->part), options);
    });
    ASSERT_TRUE(session) << session.error().toString();
    session_ = session->release();
  }
  static void TearDownTestSuite() {
    delete session_;
    delete file_;
    delete folder_;
  }
  void SetUp() override {
    if (session_ == nullptr) GTEST_SKIP() << "HEARTH_TEST_DATA is not set.";
    ASSERT_TRUE(session_->replace({}));
  }

  std::vector<int32_t> encode(std::string_view text) const {
    const auto tokens = file_->tokenizer->encode(text, SpecialTokens::kAreParsed);
    if (!tokens) ADD_FAILURE() << tokens.error().toString();
    return tokens.value_or(std::vector<int32_t>());
  }
  std::vector<float> logits() const {
    const auto logits = session_->logits();
    if (!logits) {
      ADD_FAILURE() << logits.error().toString();
      return std::vector<float>(session_->vocabularySize());
    }
    return {logits->begin(), logits->end()};
  }

  inline static std::string* folder_ = nullptr;
  inline static ModelFile* file_ = nullptr;
  inline static Session* session_ = nullptr;
};

// A folder for stored prefixes, with a marked beginning and how a text goes on after it.
class StoredPrefixTest : public SessionTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    if (session_ == nullptr) return;
    std::string pattern = std::filesystem::temp_directory_path() / "hearth-prefix-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    std::string text = "<|im_start|>";
    for (int i = 0; i < 60; ++i) text += " one two three four";
    prefix_ = encode(text);
    prefix_.resize(150);  // one run of 128 tokens, and one that is not full
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  static base::Sha256Digest digestOf(std::string_view model) {
    return base::Sha256::of({reinterpret_cast<const uint8_t*>(model.data()), model.size()});
  }
  // A session as another process has it; the compiled model is shared.
  std::unique_ptr<Session> another(std::string_view model = "model") const {
    auto fork = session_->fork();
    if (!fork) ADD_FAILURE() << fork.error().toString();
    auto store = cache::PrefixStore::open({.path = root_});
    if (!store) ADD_FAILURE() << store.error().message;
    EXPECT_TRUE(
        (*fork)->usePrefixes(std::make_shared<PrefixCache>(*store, digestOf(model), "name")));
    return std::move(*fork);
  }
  std::vector<float> logitsAfter(Session* session, std::string_view text) const {
    std::vector<int32_t> tokens = prefix_;
    const std::vector<int32_t> rest = encode(text);
    tokens.insert(tokens.end(), rest.begin(), rest.end());
    EXPECT_TRUE(session->replace(tokens));
    EXPECT_TRUE(session->markPrefix(prefix_.size()));
    const auto logits = session->logits();
    if (!logits) {
      ADD_FAILURE() << logits.error().toString();
      return {};
    }
    return {logits->begin(), logits->end()};
  }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(root_ + "/prefixes"))
      files.push_back(entry.path());
    return files;
  }

  std::string root_;
  std::vector<int32_t> prefix_;
};

}  // namespace hearth::llm
