// SPDX-License-Identifier: Apache-2.0
#include "llm_server/conversation_pool.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace hearth::llm_server {
namespace {

// A real model, which all tests share.
class ConversationPoolTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const char* const data = std::getenv("HEARTH_TEST_DATA");
    if (data == nullptr) return;
    llm::OpenModelOptions options;
    options.compile.threads = 2;
    options.compile.cache = HEARTH_CACHE_OFF;
    auto model = ServedModel::open(
        "small=" + std::string(data) + "/data/llm/smollm2-135m-instruct-i8.litertlm", options);
    ASSERT_TRUE(model) << model.error().toString();
    model_ = new std::shared_ptr<const ServedModel>(std::move(*model));
  }
  static void TearDownTestSuite() {
    delete model_;
    model_ = nullptr;
  }
  void SetUp() override {
    if (model_ == nullptr) GTEST_SKIP() << "HEARTH_TEST_DATA is not set.";
    EXPECT_EQ((*model_)->name, "small");
  }

  // Takes a session for these tokens and computes them. Expects that many to be there already.
  static Conversation* take(ConversationPool* pool, const std::vector<int32_t>& tokens,
                            size_t reused) {
    const auto taken = pool->take(*model_, tokens, 0);
    if (!taken || taken->conversation == nullptr) {
      ADD_FAILURE() << (taken ? "all are busy" : taken.error().toString());
      return nullptr;
    }
    EXPECT_EQ(taken->reused, reused);
    EXPECT_TRUE(taken->conversation->session->logits());
    return taken->conversation;
  }
  static std::vector<int32_t> text(size_t count, int32_t first) {
    std::vector<int32_t> tokens;
    for (size_t i = 0; i < count; ++i) tokens.push_back(first + static_cast<int32_t>(i));
    return tokens;
  }

  inline static std::shared_ptr<const ServedModel>* model_ = nullptr;
};

TEST_F(ConversationPoolTest, AConversationGoesOnInItsSession) {
  ConversationPool pool({.sessions = 2});
  std::vector<int32_t> tokens = text(80, 100);
  Conversation* const first = take(&pool, tokens, 0);
  pool.giveBack(first);
  tokens.insert(tokens.end(), {1, 2, 3});
  EXPECT_EQ(take(&pool, tokens, 80), first);
  pool.giveBack(first);
  EXPECT_EQ(pool.counts().continued, 1u);
  EXPECT_EQ(pool.counts().kept, 1u);
}

TEST_F(ConversationPoolTest, TwoConversationsThatGoOnFromOneAreForked) {
  ConversationPool pool({.sessions = 3});
  std::vector<int32_t> tokens = text(80, 100);
  Conversation* const first = take(&pool, tokens, 0);
  // While that is in use as well as later.
  std::vector<int32_t> other = tokens;
  tokens.insert(tokens.end(), {1, 2, 3});
  other.insert(other.end(), {4, 5});
  Conversation* const second = take(&pool, other, 80);
  EXPECT_NE(second, first);
  pool.giveBack(first);
  EXPECT_EQ(take(&pool, tokens, 80), first);
  pool.giveBack(second);
  other.push_back(6);
  EXPECT_EQ(take(&pool, other, 82), second);
  EXPECT_EQ(pool.counts().forked, 1u);
  EXPECT_EQ(pool.counts().busy, 2u);
}

TEST_F(ConversationPoolTest, TheSessionThatWasNotUsedForLongestGivesWay) {
  ConversationPool pool({.sessions = 2});
  pool.giveBack(take(&pool, text(80, 100), 0));
  pool.giveBack(take(&pool, text(80, 200), 0));
  pool.giveBack(take(&pool, text(80, 100), 80));
  pool.giveBack(take(&pool, text(80, 300), 0));
  EXPECT_EQ(pool.counts().evicted, 1u);
  pool.giveBack(take(&pool, text(80, 100), 80));
  pool.giveBack(take(&pool, text(80, 200), 0));
}

TEST_F(ConversationPoolTest, WhereAllAreBusyOneHasToWait) {
  ConversationPool pool({.sessions = 1});
  Conversation* const first = take(&pool, text(80, 100), 0);
  const auto second = pool.take(*model_, text(80, 200), 0);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->conversation, nullptr);
  pool.giveBack(first);
  // The only session is taken over, with what both begin with.
  std::vector<int32_t> tokens = text(80, 100);
  tokens.back() = 7;
  EXPECT_EQ(take(&pool, tokens, 79), first);
}

TEST_F(ConversationPoolTest, AMarkedBeginningIsComputedFromItsStart) {
  ConversationPool pool({.sessions = 2});
  pool.giveBack(take(&pool, text(90, 100), 0));
  std::vector<int32_t> tokens = text(80, 100);
  tokens.insert(tokens.end(), {1, 2, 3, 4});
  const auto taken = pool.take(*model_, tokens, 82);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->reused, 0u);
}

TEST_F(ConversationPoolTest, SessionsAreDroppedWhereMemoryIsShort) {
  uint64_t used = 0;
  ConversationPool pool({.sessions = 4, .memoryBytes = 100, .usedBytes = [&] {
                           return used;
                         }});
  pool.giveBack(take(&pool, text(80, 100), 0));
  Conversation* const busy = take(&pool, text(80, 200), 0);
  used = 101;
  const auto waiting = pool.take(*model_, text(80, 300), 0);
  ASSERT_TRUE(waiting);
  EXPECT_EQ(waiting->conversation, nullptr);
  EXPECT_EQ(pool.counts().kept, 1u);
  pool.giveBack(busy);
  const auto none = pool.take(*model_, text(80, 300), 0);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), ErrorCode::kResourceExhaustedTransient);
  EXPECT_EQ(pool.counts().kept, 0u);
}

TEST_F(ConversationPoolTest, TokensThatAreNoneLeaveNothingBehind) {
  ConversationPool pool({.sessions = 2});
  EXPECT_FALSE(pool.take(*model_, std::vector<int32_t>{-1}, 0));
  EXPECT_EQ(pool.counts().kept, 0u);
}

}  // namespace
}  // namespace hearth::llm_server
