// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/plan_keys.h"

#include <gtest/gtest.h>

namespace hearth::cpu {
namespace {

constexpr base::Sha256Digest kContent{1};

// What PlanKeys are made from.
struct Origin {
  graph::Model model;
  hal::PrepareOptions options;
  BuildIdentity build;
  unsigned threads = 2;

  Origin() { model.subgraphs.resize(1); }
  PlanKeys keys() const { return {model, options, build, threads}; }
};

TEST(PlanKeysTest, EqualOriginsHaveEqualKeys) {
  const Origin one;
  const Origin same;
  EXPECT_EQ(one.keys().graph(), same.keys().graph());
  EXPECT_EQ(one.keys().record(), same.keys().record());
  EXPECT_EQ(one.keys().buildLock(), same.keys().buildLock());
  EXPECT_EQ(one.keys().fact("tuning"), same.keys().fact("tuning"));
  EXPECT_EQ(one.keys().plan(kContent), same.keys().plan(kContent));
}

TEST(PlanKeysTest, ThePlanDependsOnContentStructureOptionsAndBuild) {
  const Origin origin;
  const cache::PlanKey plan = origin.keys().plan(kContent);
  EXPECT_NE(origin.keys().plan(base::Sha256Digest{2}), plan);
  Origin model = origin;
  model.model.constantBytes = {7};
  model.model.subgraphs[0].operands.resize(1);
  EXPECT_NE(model.keys().plan(kContent), plan);
  Origin options = origin;
  options.options.preference = hal::Preference::kSustainedSpeed;
  EXPECT_NE(options.keys().plan(kContent), plan);
  Origin build = origin;
  build.build.packing = {3};
  EXPECT_NE(build.keys().plan(kContent), plan);
}

TEST(PlanKeysTest, ABundleHasOnePlanForAllSignatures) {
  const Origin origin;
  Origin signature = origin;
  signature.model.subgraphs[0].operands.resize(1);
  EXPECT_NE(signature.keys().graph(), origin.keys().graph());
  EXPECT_EQ(signature.keys().bundle(kContent), origin.keys().bundle(kContent));
}

TEST(PlanKeysTest, OnlyFactsDependOnTheNumberOfThreads) {
  const Origin origin;
  Origin threads = origin;
  threads.threads = 4;
  EXPECT_NE(threads.keys().fact("tuning"), origin.keys().fact("tuning"));
  EXPECT_NE(origin.keys().fact("traits"), origin.keys().fact("tuning"));
  EXPECT_EQ(threads.keys().buildLock(), origin.keys().buildLock());
  EXPECT_EQ(threads.keys().plan(kContent), origin.keys().plan(kContent));
}

TEST(PlanKeysTest, TheRecordBelongsToTheStructureAlone) {
  const Origin origin;
  Origin build = origin;
  build.build.driver = {4};
  EXPECT_EQ(build.keys().record(), origin.keys().record());
  EXPECT_NE(build.keys().buildLock(), origin.keys().buildLock());
  EXPECT_EQ(build.keys().origin(kContent).build.driver, (base::Sha256Digest{4}));
}

}  // namespace
}  // namespace hearth::cpu
