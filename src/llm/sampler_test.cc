// SPDX-License-Identifier: Apache-2.0
#include "llm/sampler.h"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <limits>

#include "llm/prefill_plan.h"

namespace hearth::llm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// How often each of four tokens is drawn in 10,000 rounds.
std::array<int, 4> draws(const SamplerOptions& options, const std::vector<float>& logits) {
  Sampler sampler(options);
  std::array<int, 4> counts{};
  for (int i = 0; i < 10'000; ++i) ++counts.at(static_cast<size_t>(sampler.next(logits)));
  return counts;
}

const std::vector<float> kLogits = {std::log(1.0F), std::log(2.0F), std::log(4.0F), std::log(1.0F)};

TEST(SamplerTest, WithoutTemperatureTheMostLikelyTokenIsTaken) {
  EXPECT_THAT(draws({}, kLogits), ElementsAre(0, 0, 10'000, 0));
  EXPECT_THAT(draws({.suppressed = {2}}, kLogits), ElementsAre(0, 10'000, 0, 0));
  const float none = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(Sampler({}).next(std::vector<float>{none, 1, none, 1}), 1);
  EXPECT_EQ(Sampler({.temperature = 1}).next(std::vector<float>{none, none}), 0);
}

TEST(SamplerTest, TokensAreDrawnByTheirProbability) {
  const std::array<int, 4> counts = draws({.temperature = 1, .seed = 7}, kLogits);
  EXPECT_NEAR(counts[0], 1250, 200);
  EXPECT_NEAR(counts[1], 2500, 200);
  EXPECT_NEAR(counts[2], 5000, 200);
  EXPECT_NEAR(counts[3], 1250, 200);
}

TEST(SamplerTest, UnlikelyTokensAreCutOff) {
  const std::array<int, 4> top2 = draws({.temperature = 1, .topK = 2}, kLogits);
  EXPECT_NEAR(top2[1], 3333, 200);
  EXPECT_EQ(top2[0] + top2[3], 0);
  EXPECT_THAT(draws({.temperature = 1, .topP = 0.5F}, kLogits), ElementsAre(0, 0, 10'000, 0));
  const std::array<int, 4> half = draws({.temperature = 1, .minP = 0.5F}, kLogits);
  EXPECT_NEAR(half[1], 3333, 200);
  EXPECT_EQ(half[0] + half[3], 0);
}

TEST(SamplerTest, TokensThatAreThereBecomeLessLikely) {
  const std::vector<float> logits = {2, 1.5F, -1, -1.5F};
  const std::vector<int32_t> text = {0, 2, 0, 1, 1, 0};  // the last three are the answer
  EXPECT_EQ(Sampler({}).next(logits, text, 3), 0);
  EXPECT_EQ(Sampler({.repetitionPenalty = 2}).next(logits, std::vector<int32_t>{0}, 0), 1);
  // Scores below 0 become lower, too.
  EXPECT_EQ(Sampler({.repetitionPenalty = 2, .suppressed = {0, 1}}).next(logits, text, 3), 3);
  EXPECT_EQ(Sampler({.presencePenalty = 1}).next(logits, text, 3), 0);
  EXPECT_EQ(Sampler({.presencePenalty = 1}).next(logits, text, 1), 1);
  EXPECT_EQ(Sampler({.presencePenalty = -1}).next(logits, std::vector<int32_t>{0, 1}, 1), 1);
  EXPECT_EQ(Sampler({.frequencyPenalty = 0.4F}).next(logits, text, 3), 0);
  EXPECT_EQ(Sampler({.frequencyPenalty = 0.4F}).next(logits, std::vector<int32_t>{0, 0}, 2), 1);
  // Tokens that there are no scores of.
  EXPECT_EQ(Sampler({.presencePenalty = 1}).next(logits, std::vector<int32_t>{-1, 4}, 2), 0);
}

TEST(SamplerTest, ASeedRepeatsItself) {
  Sampler one({.temperature = 1, .seed = 3});
  Sampler other({.temperature = 1, .seed = 3});
  for (int i = 0; i < 100; ++i) EXPECT_EQ(one.next(kLogits), other.next(kLogits));
}

std::vector<std::pair<size_t, size_t>> plan(std::vector<size_t> lengths, size_t count,
                                            size_t position, size_t capacity) {
  std::vector<std::pair<size_t, size_t>> chunks;
  for (const Chunk& chunk : planPrefill(lengths, count, position, capacity))
    chunks.emplace_back(chunk.length, chunk.tokens);
  return chunks;
}

TEST(PrefillPlanTest, LongChunksComeFirstAndFewTokensAreDecoded) {
  EXPECT_THAT(plan({128}, 0, 0, 2048), IsEmpty());
  EXPECT_THAT(plan({128}, 300, 0, 2048),
              ElementsAre(std::pair(128, 128), std::pair(128, 128), std::pair(128, 44)));
  EXPECT_THAT(plan({128}, 130, 0, 2048),
              ElementsAre(std::pair(128, 128), std::pair(1, 1), std::pair(1, 1)));
  EXPECT_THAT(plan({32, 128}, 150, 0, 2048), ElementsAre(std::pair(128, 128), std::pair(32, 22)));
  EXPECT_THAT(plan({}, 2, 0, 2048), ElementsAre(std::pair(1, 1), std::pair(1, 1)));
}

TEST(PrefillPlanTest, ARunCostsMoreThanItsTokens) {
  const std::vector<size_t> lengths = {16, 32, 64, 128};
  EXPECT_THAT(plan(lengths, 2, 0, 2048), ElementsAre(std::pair(1, 1), std::pair(1, 1)));
  EXPECT_THAT(plan(lengths, 3, 0, 2048), ElementsAre(std::pair(16, 3)));
  EXPECT_THAT(plan(lengths, 18, 0, 2048), ElementsAre(std::pair(32, 18)));
  EXPECT_THAT(plan(lengths, 70, 0, 2048), ElementsAre(std::pair(64, 64), std::pair(16, 6)));
  EXPECT_THAT(plan(lengths, 120, 0, 2048), ElementsAre(std::pair(128, 120)));
}

// So a computation may be interrupted, and found computed in part.
TEST(PrefillPlanTest, TheRestOfAPlanIsThePlanOfTheRest) {
  constexpr size_t kCapacity = 700;
  for (const std::vector<size_t>& lengths :
       {std::vector<size_t>{128}, {16, 32, 64, 128}, {16, 48, 128, 512}}) {
    for (size_t position = 0; position < kCapacity; position += 23) {
      for (size_t count = 1; position + count <= kCapacity; count += 7) {
        auto rest = plan(lengths, count, position, kCapacity);
        size_t taken = 0;
        while (!rest.empty()) {
          EXPECT_LE(position + taken + rest[0].first, kCapacity);
          taken += rest[0].second;
          rest.erase(rest.begin());
          ASSERT_EQ(plan(lengths, count - taken, position + taken, kCapacity), rest);
        }
        ASSERT_EQ(taken, count);
      }
    }
  }
}

TEST(PrefillPlanTest, ShortLengthsArePowersOfTwo) {
  EXPECT_THAT(shorterLengths(std::vector<size_t>{128, 1024}), ElementsAre(16, 32, 64));
  EXPECT_THAT(shorterLengths(std::vector<size_t>{100}), ElementsAre(16, 32, 64));
  EXPECT_THAT(shorterLengths(std::vector<size_t>{16}), IsEmpty());
  EXPECT_THAT(shorterLengths({}), IsEmpty());
}

TEST(PrefillPlanTest, NothingIsWrittenBehindTheCache) {
  // 128 would end behind it, though it needs to take 100 only.
  const auto chunks = plan({32, 128}, 100, 1940, 2040);
  ASSERT_EQ(chunks.size(), 7);
  EXPECT_EQ(chunks[2], std::pair(size_t{32}, size_t{32}));
  EXPECT_EQ(chunks[3], std::pair(size_t{1}, size_t{1}));
}

TEST(PrefillPlanTest, LongSignaturesAreLeftOut) {
  EXPECT_THAT(usefulLengths({1024, 128}), ElementsAre(128));
  EXPECT_THAT(usefulLengths({2048, 1024}), ElementsAre(1024));
  EXPECT_THAT(usefulLengths({}), IsEmpty());
}

}  // namespace
}  // namespace hearth::llm
