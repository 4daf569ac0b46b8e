// SPDX-License-Identifier: Apache-2.0
// Sessions that begin with stored scores.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "llm/compiled_model.h"
#include "llm/testing/session_fixture.h"

namespace hearth::llm {
namespace {

using ::testing::HasSubstr;

// The scores of a text that is marked as a whole, and of what follows it token by token.
std::vector<std::vector<float>> scoresFrom(Session* session, std::span<const int32_t> text) {
  std::vector<std::vector<float>> all;
  EXPECT_TRUE(session->replace({}));
  EXPECT_TRUE(session->replace(text));
  EXPECT_TRUE(session->markPrefix(text.size()));
  for (size_t i = 0; i < 3; ++i) {
    const auto logits = session->logits();
    if (!logits) {
      ADD_FAILURE() << logits.error().toString();
      return all;
    }
    all.emplace_back(logits->begin(), logits->end());
    const int32_t token = mostLikely(*logits);
    EXPECT_TRUE(session->append(std::span(&token, 1)));
  }
  return all;
}

TEST_F(StoredPrefixTest, OfAWholeTextTheScoresAreKept) {
  const auto expected = scoresFrom(session_, prefix_);
  ASSERT_TRUE(session_->replace({}));
  const auto first = another();
  EXPECT_EQ(scoresFrom(first.get(), prefix_), expected);
  ASSERT_TRUE(first->keepPrefix());
  EXPECT_EQ(files().size(), 3u);
  const auto second = another();
  ASSERT_TRUE(second->replace(prefix_));
  ASSERT_TRUE(second->markPrefix(prefix_.size()));
  const auto advanced = second->advance();
  ASSERT_TRUE(advanced && *advanced);
  EXPECT_EQ(second->computed(), prefix_.size());
  EXPECT_EQ(second->counts().stored, prefix_.size());
  EXPECT_EQ(second->counts().decoded, 0u);
  const auto logits = second->logits();
  ASSERT_TRUE(logits) << logits.error().toString();
  EXPECT_TRUE(std::ranges::equal(*logits, expected[0]));
  const int32_t token = mostLikely(*logits);
  ASSERT_TRUE(second->append(std::span(&token, 1)));
  const auto next = second->logits();
  ASSERT_TRUE(next) << next.error().toString();
  EXPECT_TRUE(std::ranges::equal(*next, expected[1]));
  // What the text goes on with, and nothing else.
  EXPECT_EQ(second->counts().stored, prefix_.size());
  EXPECT_EQ(second->counts().prefilled, 0u);
  EXPECT_EQ(second->counts().decoded, 1u);
  ASSERT_TRUE(second->keepPrefix());
  EXPECT_EQ(files().size(), 3u);
  // Of another text nothing is known, but for what both begin with.
  const auto third = another();
  scoresFrom(third.get(), std::span(prefix_).first(prefix_.size() - 1));
  EXPECT_EQ(third->counts().stored, 128u);
}

TEST_F(StoredPrefixTest, WhatFollowsStoredScoresIsComputedAsWithoutThem) {
  const auto first = another();
  scoresFrom(first.get(), prefix_);
  ASSERT_TRUE(first->keepPrefix());
  const std::vector<int32_t> more = encode(" Paris, France, and some tokens more than one or two");
  std::vector<int32_t> other(prefix_.begin(), prefix_.begin() + 100);
  other.insert(other.end(), more.begin(), more.end());
  const auto logitsOf = [](Session* session) {
    const auto logits = session->logits();
    if (!logits) ADD_FAILURE() << logits.error().toString();
    return logits ? std::vector<float>(logits->begin(), logits->end()) : std::vector<float>();
  };
  const auto appended = [&](Session* session) {
    EXPECT_TRUE(session->append(more));
    return logitsOf(session);
  };
  const auto rewound = [&](Session* session) {
    EXPECT_TRUE(session->rewind(100));
    return appended(session);
  };
  const auto replaced = [&](Session* session) {
    EXPECT_TRUE(session->replace(other));
    return logitsOf(session);
  };
  const auto forked = [&](Session* session) {
    const auto fork = session->fork();
    EXPECT_TRUE(fork);
    const std::vector<float> same = logitsOf(fork->get());
    EXPECT_EQ(same, logitsOf(session));
    return appended(fork->get());
  };
  const auto unasked = [&](Session* session, const auto& change) {
    EXPECT_TRUE(session->replace({}));
    EXPECT_TRUE(session->replace(prefix_));
    EXPECT_TRUE(session->markPrefix(prefix_.size()));
    return change(session);
  };
  const auto asked = [&](Session* session, const auto& change) {
    return unasked(session, [&](Session* same) {
      logitsOf(same);
      EXPECT_EQ(same->counts().stored, same == session_ ? 0 : prefix_.size());
      return change(same);
    });
  };
  EXPECT_EQ(asked(another().get(), appended), asked(session_, appended));
  EXPECT_EQ(asked(another().get(), rewound), asked(session_, rewound));
  EXPECT_EQ(asked(another().get(), replaced), asked(session_, replaced));
  EXPECT_EQ(asked(another().get(), forked), asked(session_, forked));
  EXPECT_EQ(unasked(another().get(), appended), unasked(session_, appended));
  EXPECT_EQ(unasked(another().get(), replaced), unasked(session_, replaced));
}

TEST_F(StoredPrefixTest, StoredScoresNeedNoModel) {
  const auto expected = scoresFrom(session_, prefix_);
  ASSERT_TRUE(session_->replace({}));
  const auto first = another();
  scoresFrom(first.get(), prefix_);
  ASSERT_TRUE(first->keepPrefix());
  const auto store = cache::PrefixStore::open({.path = root_});
  ASSERT_TRUE(store);
  const auto prefixes = std::make_shared<const PrefixCache>(*store, digestOf("model"), "name");
  const auto create = [&](size_t context, const Session::Compile& compile) {
    auto stored = prefixes->scores(prefix_);
    EXPECT_TRUE(stored);
    return Session::createStored(prefixes, *std::move(stored), prefix_, context, compile);
  };
  size_t tries = 0;
  const auto compile = [&]() -> Result<std::shared_ptr<const CompiledModel>> {
    if (++tries == 1) return fail(ErrorCode::kNotFound, "The model is away.");
    CompileOptions options;
    options.threads = 2;
    options.cache = HEARTH_CACHE_OFF;
    return CompiledModel::create(*file_, options, Prefills::kWhenNeeded);
  };
  const auto session = create(0, compile);
  EXPECT_EQ(session->context(), session_->context());
  EXPECT_EQ(session->vocabularySize(), session_->vocabularySize());
  const auto logits = session->logits();
  ASSERT_TRUE(logits) << logits.error().toString();
  EXPECT_TRUE(std::ranges::equal(*logits, expected[0]));
  EXPECT_EQ(tries, 0u);
  const int32_t token = mostLikely(*logits);
  ASSERT_TRUE(session->append(std::span(&token, 1)));
  const auto failed = session->logits();
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().toString(), HasSubstr("is away"));
  const auto next = session->logits();
  ASSERT_TRUE(next) << next.error().toString();
  EXPECT_TRUE(std::ranges::equal(*next, expected[1]));
  EXPECT_EQ(tries, 2u);
  // No more than the context has room for.
  EXPECT_FALSE(create(prefix_.size(), nullptr)->append(std::span(&token, 1)));
  // Scores that nobody asked for change nothing.
  const auto unasked = create(0, compile);
  ASSERT_TRUE(unasked->append(std::span(&token, 1)));
  const auto whole = unasked->logits();
  ASSERT_TRUE(whole) << whole.error().toString();
  ASSERT_TRUE(session_->replace({}));
  ASSERT_TRUE(session_->replace(unasked->tokens()));
  ASSERT_TRUE(session_->markPrefix(prefix_.size()));
  EXPECT_TRUE(std::ranges::equal(*whole, this->logits()));
}

TEST_F(StoredPrefixTest, DamagedScoresAreComputedAgain) {
  const auto expected = scoresFrom(session_, prefix_);
  ASSERT_TRUE(session_->replace({}));
  using Damage = std::function<void(const std::filesystem::path&)>;
  const Damage flip = [](const std::filesystem::path& file) {
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(70000) << "wrong";
  };
  const Damage cut = [](const std::filesystem::path& file) {
    std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  };
  const Damage open = [](const std::filesystem::path& file) {
    std::filesystem::permissions(file, std::filesystem::perms(0644));
  };
  for (const Damage& damage : {flip, cut, open}) {
    const auto first = another();
    scoresFrom(first.get(), prefix_);
    ASSERT_TRUE(first->keepPrefix());
    // The scores and one token's keys and values are the shortest file.
    const auto all = files();
    ASSERT_EQ(all.size(), 3u);
    const auto file = *std::ranges::min_element(
        all, {}, [](const auto& one) { return std::filesystem::file_size(one); });
    std::filesystem::permissions(file, std::filesystem::perms(0600));
    damage(file);
    const auto second = another();
    EXPECT_EQ(scoresFrom(second.get(), prefix_), expected);
    EXPECT_EQ(second->counts().stored, prefix_.size() - 1);
    ASSERT_TRUE(second->keepPrefix());
    const auto third = another();
    EXPECT_EQ(scoresFrom(third.get(), prefix_), expected);
    EXPECT_EQ(third->counts().stored, prefix_.size());
    const auto foreign = another("another build");
    EXPECT_EQ(scoresFrom(foreign.get(), prefix_), expected);
    EXPECT_EQ(foreign->counts().stored, 0u);
    // Without what stands before them, that is computed.
    for (const auto& one : all)
      if (one != file) std::filesystem::remove(one);
    const auto fourth = another();
    EXPECT_EQ(scoresFrom(fourth.get(), prefix_), expected);
    EXPECT_EQ(fourth->counts().prefilled, prefix_.size() - 1);
  }
}

}  // namespace
}  // namespace hearth::llm
