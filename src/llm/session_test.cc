// SPDX-License-Identifier: Apache-2.0
#include "llm/session.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "llm/generation.h"
#include "llm/testing/session_fixture.h"

namespace hearth::llm {
namespace {

using ::testing::HasSubstr;

// The cosine of the angle between two lists of scores.
double similarity(const std::vector<float>& left, const std::vector<float>& right) {
  double product = 0;
  double leftSquare = 0;
  double rightSquare = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    product += double{left[i]} * right[i];
    leftSquare += double{left[i]} * left[i];
    rightSquare += double{right[i]} * right[i];
  }
  return product / std::sqrt(leftSquare * rightSquare);
}

TEST_F(SessionTest, PrefillingComputesWhatDecodingDoes) {
  const std::vector<int32_t> tokens = encode(
      "<|im_start|>The Eiffel Tower stands in the city of Paris, the capital of France. It was "
      "built by the engineer Gustave Eiffel. The city of the Eiffel Tower is called");
  ASSERT_TRUE(session_->append(tokens));
  const uint64_t before = session_->counts().prefilled;
  const std::vector<float> prefilled = logits();
  EXPECT_GT(session_->counts().prefilled, before);
  ASSERT_TRUE(session_->replace({}));
  const uint64_t decoded = session_->counts().decoded;
  for (const int32_t token : tokens) {
    ASSERT_TRUE(session_->append(std::span(&token, 1)));
    logits();
  }
  EXPECT_EQ(session_->counts().decoded, decoded + tokens.size());
  EXPECT_GT(similarity(prefilled, logits()), 0.99);
  EXPECT_EQ(mostLikely(prefilled), mostLikely(logits()));
}

// The model has signatures for 128 tokens and 1,024; fewer take one that is made of the first.
TEST_F(SessionTest, FewTokensArePrefilledByAShortSignature) {
  const std::vector<int32_t> tokens =
      encode("<|im_start|>one two three four five six seven eight nine ten eleven");
  ASSERT_EQ(tokens.size(), 12);
  ASSERT_TRUE(session_->append(tokens));
  const Session::Counts before = session_->counts();
  const std::vector<float> prefilled = logits();
  EXPECT_EQ(session_->counts().prefilled, before.prefilled + tokens.size() - 1);
  EXPECT_EQ(session_->counts().decoded, before.decoded + 1);
  // 128 tokens fit no more.
  const size_t most = session_->context();
  std::vector<int32_t> full(most - 30, tokens[1]);
  full.insert(full.end(), tokens.begin() + 1, tokens.end());
  ASSERT_TRUE(session_->replace(full));
  logits();
  const auto fork = session_->fork();
  ASSERT_TRUE(fork) << fork.error().toString();
  ASSERT_TRUE((*fork)->replace(tokens));
  const auto again = (*fork)->logits();
  ASSERT_TRUE(again) << again.error().toString();
  EXPECT_TRUE(std::ranges::equal(*again, prefilled));
  ASSERT_TRUE(session_->replace({}));
  for (const int32_t token : tokens) {
    ASSERT_TRUE(session_->append(std::span(&token, 1)));
    logits();
  }
  EXPECT_GT(similarity(prefilled, logits()), 0.99);
}

TEST_F(SessionTest, SignaturesThatAreCompiledLaterGiveTheSame) {
  CompileOptions options;
  options.threads = 2;
  options.cache = HEARTH_CACHE_OFF;
  const auto model = CompiledModel::create(*file_, options, Prefills::kWhenNeeded);
  ASSERT_TRUE(model) << model.error().toString();
  ASSERT_EQ((*model)->signatures().size(), 1u) << "decode";
  EXPECT_EQ((*model)->laterLengths(), std::vector<size_t>{128});
  const auto later = Session::create(*model, session_->context());
  ASSERT_TRUE(later) << later.error().toString();
  EXPECT_EQ((*later)->context(), session_->context());
  // 128 tokens, 32 and some that are decoded.
  std::vector<int32_t> tokens = encode("The Eiffel Tower stands in the city of Paris.");
  while (tokens.size() < 163) tokens.push_back(tokens[tokens.size() % 11]);
  tokens.resize(163);
  const uint64_t prefilled = session_->counts().prefilled;
  ASSERT_TRUE(session_->append(tokens));
  ASSERT_TRUE((*later)->append(tokens));
  const auto found = (*later)->logits();
  ASSERT_TRUE(found) << found.error().toString();
  EXPECT_EQ(std::vector<float>(found->begin(), found->end()), logits());
  EXPECT_GT((*later)->counts().prefilled, 128u);
  EXPECT_EQ((*later)->counts().prefilled, session_->counts().prefilled - prefilled);
}

TEST_F(SessionTest, WhatATextBeginsWithIsNotComputedAgain) {
  const std::vector<int32_t> tokens = encode("<|im_start|>one two three four");
  ASSERT_TRUE(session_->append(tokens));
  const std::vector<float> first = logits();
  const uint64_t decoded = session_->counts().decoded;
  EXPECT_EQ(logits(), first);
  EXPECT_EQ(session_->counts().decoded, decoded);
  std::vector<int32_t> other = tokens;
  other.back() = encode(" five").front();
  const auto reused = session_->replace(other);
  ASSERT_TRUE(reused);
  EXPECT_EQ(*reused, tokens.size() - 1);
  EXPECT_NE(logits(), first);
  EXPECT_EQ(session_->counts().decoded, decoded + 1);
  ASSERT_TRUE(session_->replace(tokens));
  EXPECT_EQ(logits(), first);
}

TEST_F(SessionTest, WhatDoesNotFitIsRefused) {
  EXPECT_FALSE(session_->logits());
  const std::vector<int32_t> tokens(session_->context() + 1, 5);
  const Status tooLong = session_->append(tokens);
  ASSERT_FALSE(tooLong);
  EXPECT_THAT(tooLong.error().toString(), HasSubstr("room for 2048"));
  for (const int32_t token : {-1, 49152}) {
    const Status wrong = session_->append(std::span(&token, 1));
    ASSERT_FALSE(wrong);
    EXPECT_THAT(wrong.error().toString(), HasSubstr("none with the number"));
  }
  EXPECT_TRUE(session_->tokens().empty());
  ASSERT_TRUE(session_->append(encode("one two")));
  EXPECT_FALSE(session_->replace(tokens));
  EXPECT_EQ(session_->tokens(), encode("one two"));
}

TEST_F(SessionTest, AForkGoesOnByItself) {
  ASSERT_TRUE(session_->append(encode("<|im_start|>one two three four")));
  const std::vector<float> first = logits();
  const auto fork = session_->fork();
  ASSERT_TRUE(fork) << fork.error().toString();
  EXPECT_EQ((*fork)->tokens(), session_->tokens());
  const int32_t next = encode(" five").front();
  ASSERT_TRUE(session_->append(std::span(&next, 1)));
  const std::vector<float> longer = logits();
  const auto same = (*fork)->logits();
  ASSERT_TRUE(same);
  EXPECT_TRUE(std::ranges::equal(*same, first));
  EXPECT_EQ((*fork)->counts().decoded, 0);  // the caches came along
  ASSERT_TRUE((*fork)->append(std::span(&next, 1)));
  const auto theirs = (*fork)->logits();
  ASSERT_TRUE(theirs);
  EXPECT_TRUE(std::ranges::equal(*theirs, longer));
}

TEST_F(SessionTest, WhatIsRewoundIsForgotten) {
  const std::vector<int32_t> tokens = encode("<|im_start|>one two three four");
  ASSERT_TRUE(session_->append(tokens));
  const std::vector<float> first = logits();
  ASSERT_TRUE(session_->append(encode(" five six")));
  logits();
  ASSERT_TRUE(session_->rewind(tokens.size()));
  EXPECT_EQ(session_->tokens(), tokens);
  EXPECT_EQ(logits(), first);
  EXPECT_FALSE(session_->rewind(tokens.size() + 1));
  ASSERT_TRUE(session_->rewind(0));
  EXPECT_FALSE(session_->logits());
}

TEST_F(SessionTest, LimitsEndAComputationThatMayGoOn) {
  const std::vector<int32_t> tokens = encode("<|im_start|>one two three four");
  ASSERT_TRUE(session_->append(tokens));
  const std::vector<float> expected = logits();
  ASSERT_TRUE(session_->replace({}));
  ASSERT_TRUE(session_->append(tokens));
  std::atomic<bool> isCancelled = true;
  StepLimits limits;
  limits.isCancelled = &isCancelled;
  const auto cancelled = session_->logits(limits);
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().code(), ErrorCode::kMissedDeadlineTransient);
  limits.isCancelled = nullptr;
  limits.deadline = std::chrono::steady_clock::now();
  const auto late = session_->logits(limits);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::kMissedDeadlineTransient);
  EXPECT_EQ(logits(), expected);
}

// Greedy tokens of LiteRT-LM, given as the text before each: one step of another rounding does not
// make the rest incomparable.
TEST_F(SessionTest, TokensAreThoseOfLitertLm) {
  std::ifstream stream(*folder_ + "greedy.json");
  const auto cases = nlohmann::json::parse(stream);
  size_t same = 0;
  size_t count = 0;
  // All take minutes with sanitizers.
  constexpr size_t kStep = 5;
  for (size_t i = 0; i < cases.size(); i += kStep) {
    const auto& one = cases[i];
    // It puts the start in front of every prompt.
    std::vector<int32_t> text = encode("<|im_start|>" + one["prompt"].get<std::string>());
    ASSERT_TRUE(session_->replace(text));
    for (const int32_t token : encode(one["greedy"].get<std::string>())) {
      same += mostLikely(logits()) == token ? 1 : 0;
      ++count;
      ASSERT_TRUE(session_->append(std::span(&token, 1)));
    }
  }
  ASSERT_GT(count, 80);
  RecordProperty("same", static_cast<int>(same));
  EXPECT_GT(static_cast<double>(same) / static_cast<double>(count), 0.9) << same << " of " << count;
}

// Its table of embeddings is a part of its own, and its weights have 4 bits in blocks of 32.
TEST(EmbedderTest, TokensAreThoseOfLitertLm) {
  const char* const data = std::getenv("HEARTH_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "HEARTH_TEST_DATA is not set.";
  const std::string folder = std::string(data) + "/data/llm/";
  const auto file = readModelFile(folder + "smollm2-135m-instruct-i4b32-embedder.litertlm", "");
  ASSERT_TRUE(file) << file.error().toString();
  EXPECT_EQ(file->part, "prefill_decode");
  EXPECT_EQ(file->embedders, std::vector<std::string>{"embedder"});
  CompileOptions options;
  options.threads = 2;
  options.cache = HEARTH_CACHE_OFF;
  const auto model = CompiledModel::create(*file, options);
  ASSERT_TRUE(model) << model.error().toString();
  const auto session = Session::create(*model, 0);
  ASSERT_TRUE(session) << session.error().toString();
  std::ifstream stream(folder + "greedy_i4b32.json");
  const auto one = nlohmann::json::parse(stream)[0];
  const auto prompt = file->tokenizer->encode("<|im_start|>" + one["prompt"].get<std::string>(),
                                              SpecialTokens::kAreParsed);
  const auto greedy =
      file->tokenizer->encode(one["greedy"].get<std::string>(), SpecialTokens::kAreParsed);
  ASSERT_TRUE(prompt && greedy);
  ASSERT_TRUE((*session)->append(*prompt));
  size_t same = 0;
  constexpr size_t kCompared = 8;
  for (size_t i = 0; i < kCompared; ++i) {
    const auto logits = (*session)->logits();
    ASSERT_TRUE(logits) << logits.error().toString();
    same += mostLikely(*logits) == (*greedy)[i] ? 1 : 0;
    ASSERT_TRUE((*session)->append(std::span(*greedy).subspan(i, 1)));
  }
  EXPECT_GE(same, kCompared - 1);
}

TEST_F(StoredPrefixTest, AnotherProcessComputesTheSameWithoutIt) {
  const std::vector<float> expected = logitsAfter(session_, " Paris, France");
  ASSERT_TRUE(session_->replace({}));
  const auto first = another();
  EXPECT_EQ(logitsAfter(first.get(), " Paris, France"), expected);
  EXPECT_EQ(first->counts().stored, 0u);
  ASSERT_TRUE(first->keepPrefix());
  EXPECT_EQ(files().size(), 2u);
  const auto second = another();
  EXPECT_EQ(logitsAfter(second.get(), " Paris, France"), expected);
  EXPECT_EQ(second->counts().stored, prefix_.size());
  EXPECT_EQ(second->counts().prefilled + second->counts().decoded,
            second->tokens().size() - prefix_.size());
  // Nothing is left to keep, and another text goes on with the same beginning.
  ASSERT_TRUE(second->keepPrefix());
  const auto third = another();
  const auto other = logitsAfter(third.get(), " London");
  EXPECT_EQ(third->counts().stored, prefix_.size());
  EXPECT_EQ(other, logitsAfter(session_, " London"));
}

TEST_F(StoredPrefixTest, RunByRunTheResultsAreTheSame) {
  const std::vector<float> expected = logitsAfter(session_, " Paris, France");
  const std::vector<int32_t> tokens = session_->tokens();
  ASSERT_TRUE(session_->replace({}));
  const auto first = another();
  ASSERT_FALSE(first->advance());
  ASSERT_TRUE(first->replace(tokens));
  ASSERT_TRUE(first->markPrefix(prefix_.size()));
  size_t runs = 0;
  for (bool isReady = false; !isReady; ++runs) {
    const auto advanced = first->advance();
    ASSERT_TRUE(advanced) << advanced.error().toString();
    isReady = *advanced;
  }
  EXPECT_GT(runs, 2u);
  EXPECT_EQ(first->counts().prefilled + first->counts().decoded, tokens.size() - 1);
  EXPECT_EQ(logitsAfter(first.get(), " Paris, France"), expected);
  ASSERT_TRUE(first->keepPrefix());
  EXPECT_EQ(files().size(), 2u);
}

// Bytes of this process's mappings of stored prefixes: all, and the pages that it has copies of.
std::pair<size_t, size_t> mappedPrefixes(const std::string& root) {
  std::ifstream maps("/proc/self/smaps");
  bool isPrefix = false;
  std::pair<size_t, size_t> bytes;
  for (std::string line; std::getline(maps, line);) {
    const std::string name = line.substr(0, line.find_first_of(": "));
    if (name.find('-') != std::string::npos)
      isPrefix = line.find(root) != std::string::npos;
    else if (isPrefix && name == "Size")
      bytes.first += std::stoul(line.substr(name.size() + 1)) << 10;
    else if (isPrefix && name == "Anonymous")
      bytes.second += std::stoul(line.substr(name.size() + 1)) << 10;
  }
  return bytes;
}

TEST_F(StoredPrefixTest, ProcessesShareTheKeysAndValuesOfWholeRuns) {
  if (::sysconf(_SC_PAGESIZE) != 4096) GTEST_SKIP() << "Pages have another size.";
  const auto first = another();
  logitsAfter(first.get(), " Paris");
  ASSERT_TRUE(first->keepPrefix());
  const auto second = another();
  logitsAfter(second.get(), " Paris, France");
  // Of 30 layers with 3 heads, keys and values of 64 numbers each. The tokens behind the first run
  // are too few for mappings.
  constexpr size_t kTokenBytes = size_t{30} * 3 * 2 * 64 * sizeof(float);
  EXPECT_EQ(mappedPrefixes(root_), std::pair(128 * kTokenBytes, size_t{0}));
}

TEST_F(StoredPrefixTest, AForkSharesThePagesOfAStoredPrefix) {
  if (::sysconf(_SC_PAGESIZE) != 4096) GTEST_SKIP() << "Pages have another size.";
  const auto first = another();
  logitsAfter(first.get(), " Paris");
  ASSERT_TRUE(first->keepPrefix());
  const auto second = another();
  const std::vector<float> expected = logitsAfter(second.get(), " Paris, France");
  const size_t once = mappedPrefixes(root_).first;
  EXPECT_GT(once, 0u);
  // What the one computes is no part of the other.
  const auto fork = second->fork();
  ASSERT_TRUE(fork) << fork.error().toString();
  EXPECT_EQ(mappedPrefixes(root_), std::pair(2 * once, size_t{0}));
  logitsAfter(second.get(), " London");
  EXPECT_EQ((*fork)->counts().stored, 0u);
  ASSERT_TRUE((*fork)->rewind((*fork)->tokens().size() - 1));
  EXPECT_EQ(logitsAfter(fork->get(), " Paris, France"), expected);
  EXPECT_EQ((*fork)->counts().prefilled, 0u);
  // Where the store has lost it, the fork has copies.
  ASSERT_TRUE(std::filesystem::remove_all(root_ + "/prefixes") > 0);
  const auto copy = (*fork)->fork();
  ASSERT_TRUE(copy) << copy.error().toString();
  ASSERT_TRUE((*copy)->rewind((*copy)->tokens().size() - 1));
  EXPECT_EQ(logitsAfter(copy->get(), " Paris, France"), expected);
  EXPECT_EQ((*copy)->counts().prefilled, 0u);
}

TEST_F(StoredPrefixTest, WhatTwoBeginningsHaveInCommonIsFound) {
  const auto first = another();
  logitsAfter(first.get(), " Paris");
  ASSERT_TRUE(first->keepPrefix());
  prefix_[140] = prefix_[141];
  const auto second = another();
  const auto found = logitsAfter(second.get(), " Paris");
  EXPECT_EQ(second->counts().stored, 128u);
  EXPECT_EQ(found, logitsAfter(session_, " Paris"));
  ASSERT_TRUE(second->keepPrefix());
  EXPECT_EQ(files().size(), 3u);
}

TEST_F(StoredPrefixTest, ADamagedBlockIsComputedAgain) {
  const std::vector<float> expected = logitsAfter(session_, " Paris, France");
  ASSERT_TRUE(session_->replace({}));
  for (const bool isCut : {false, true}) {
    const auto first = another();
    logitsAfter(first.get(), " Paris, France");
    ASSERT_TRUE(first->keepPrefix());
    for (const auto& file : files()) {
      std::filesystem::permissions(file, std::filesystem::perms(0600));
      if (isCut)
        std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
      else
        std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(70000) << "wrong";
    }
    const auto second = another();
    EXPECT_EQ(logitsAfter(second.get(), " Paris, France"), expected);
    EXPECT_EQ(second->counts().stored, 0u);
    ASSERT_TRUE(second->keepPrefix());
    EXPECT_EQ(files().size(), 2u);
  }
}

TEST_F(StoredPrefixTest, AnotherModelHasBlocksOfItsOwn) {
  const auto first = another();
  logitsAfter(first.get(), " Paris");
  ASSERT_TRUE(first->keepPrefix());
  const auto second = another("another build");
  logitsAfter(second.get(), " Paris");
  EXPECT_EQ(second->counts().stored, 0u);
}

TEST_F(StoredPrefixTest, OnlyWhatIsMarkedIsKept) {
  const auto first = another();
  logitsAfter(first.get(), " Paris");
  ASSERT_TRUE(first->rewind(10));  // which forgets the mark
  ASSERT_TRUE(first->keepPrefix());
  EXPECT_TRUE(files().empty());
  EXPECT_FALSE(first->markPrefix(11));
  ASSERT_TRUE(first->replace(prefix_));
  ASSERT_TRUE(first->logits());
  ASSERT_TRUE(first->keepPrefix());
  EXPECT_TRUE(files().empty());
}

}  // namespace
}  // namespace hearth::llm
