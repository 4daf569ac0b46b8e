// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/context_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace hearth::cpu {
namespace {

using Context = std::unique_ptr<ExecutionContext>;

// A pool whose plans have no nodes.
class ContextPoolTest : public ::testing::Test {
 protected:
  static Context contextOf(const Plan& plan,
                           std::shared_ptr<const KernelChoices> choices = nullptr) {
    auto context = ExecutionContext::create(
        plan, std::make_shared<KernelFactory>(plan, nullptr, std::move(choices)));
    EXPECT_TRUE(context);
    return *std::move(context);
  }
  void setPlan() {
    auto planned = std::make_unique<ContextPool::Planned>();
    Context first = contextOf(planned->plan);
    pool_.setPlan(std::move(planned), std::move(first));
  }
  Context take() {
    if (Context idle = pool_.takeIdle()) return idle;
    auto made = pool_.make(nullptr);
    EXPECT_TRUE(made);
    return *std::move(made);
  }

  void SetUp() override { setPlan(); }
  ContextPool pool_;
};

TEST_F(ContextPoolTest, EachExecutionHasAContextAndTheNextOneUsesIt) {
  Context first = take();
  Context second = take();
  EXPECT_NE(first, second);
  const ExecutionContext* const kept = second.get();
  pool_.giveBack(std::move(first));
  pool_.giveBack(std::move(second));
  EXPECT_EQ(pool_.takeIdle().get(), kept);
}

// As the two sides of a state do.
TEST_F(ContextPoolTest, BuffersThatComeInTurnHaveAContextEach) {
  std::array<uint64_t, 3> memory{};
  using Buffers = std::vector<ExecutionContext::Buffer>;
  const auto run = [&](size_t side) {
    const Buffers inputs = {{&memory[side], sizeof memory[side], true}};
    Context context = pool_.takeIdle(inputs, inputs);
    if (context == nullptr) context = take();
    EXPECT_TRUE(context->run(inputs, inputs, nullptr, base::Deadline()));
    EXPECT_TRUE(context->isBoundTo(inputs, inputs));
    const ExecutionContext* const used = context.get();
    pool_.giveBack(std::move(context));
    return used;
  };
  const ExecutionContext* const first = run(0);
  EXPECT_EQ(run(1), first);
  const std::vector<ExecutionContext::Buffer> zero = {{memory.data(), sizeof memory[0], true}};
  EXPECT_EQ(pool_.takeIdle(zero, zero), nullptr);
  pool_.giveBack(*pool_.make(nullptr));
  const ExecutionContext* const second = run(0);
  EXPECT_NE(second, first);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(run(1), first);
    EXPECT_EQ(run(0), second);
  }
  // Other buffers take the one that was used longest ago.
  EXPECT_EQ(run(2), first);
  EXPECT_EQ(run(0), second);
  std::vector<Context> kept;
  while (Context idle = pool_.takeIdle()) kept.push_back(std::move(idle));
  EXPECT_EQ(kept.size(), 2u);
}

TEST_F(ContextPoolTest, ContextsOfAnEarlierPlanAreNotKept) {
  Context old = take();
  setPlan();
  EXPECT_NE(&old->plan(), &pool_.plan());
  EXPECT_FALSE(pool_.isInForce(*old));
  EXPECT_FALSE(pool_.isFirstStage(*old));
  pool_.giveBack(std::move(old));
  const Context first = pool_.takeIdle();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(&first->plan(), &pool_.plan());
  EXPECT_EQ(pool_.takeIdle(), nullptr);
}

TEST_F(ContextPoolTest, ContextsFromBeforeAReplacementOfWeightsAreNotKept) {
  const uint64_t before = pool_.replacements();
  Context running = take();
  pool_.giveBack(take());
  pool_.noteReplacement();
  EXPECT_NE(pool_.replacements(), before);
  EXPECT_EQ(pool_.takeIdle(), nullptr);
  EXPECT_FALSE(pool_.isInForce(*running));
  pool_.giveBack(std::move(running));
  EXPECT_EQ(pool_.takeIdle(), nullptr);
}

// However taking and giving back fall together with replacements.
TEST_F(ContextPoolTest, NobodyGetsAContextFromBeforeAReplacement) {
  constexpr uint64_t kReplacements = 200;
  const uint64_t first = take()->poolVersion();
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      for (uint64_t seen = 0; seen < kReplacements;) {
        seen = pool_.replacements();
        Context context = take();
        EXPECT_GE(context->poolVersion(), first + seen);
        pool_.giveBack(std::move(context));
      }
    });
  for (uint64_t i = 0; i < kReplacements; ++i) {
    pool_.giveBack(take());
    pool_.noteReplacement();
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ContextPoolTest, TheSecondStageReplacesContextsOfTheFirst) {
  Context running = take();
  pool_.giveBack(take());
  EXPECT_TRUE(pool_.isFirstStage(*running));
  const auto choices = std::make_shared<const KernelChoices>();
  pool_.beginSecondStage(contextOf(pool_.plan(), choices));
  EXPECT_FALSE(pool_.isFirstStage(*running));
  pool_.giveBack(std::move(running));
  const Context chosen = pool_.takeIdle();
  ASSERT_NE(chosen, nullptr);
  EXPECT_EQ(chosen->kernels().choices(), choices);
  EXPECT_EQ(pool_.takeIdle(), nullptr);
  EXPECT_EQ(take()->kernels().choices(), choices);
}

}  // namespace
}  // namespace hearth::cpu
