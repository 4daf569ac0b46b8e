// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/activation_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "drivers/cpu/plan/execution_context.h"
#include "memory/budget.h"

namespace hearth::cpu {
namespace {

constexpr uint64_t kSmall = 4096;
constexpr uint64_t kLarge = 64 * kSmall;

ActivationMemory::OwnBlock take(ActivationMemory* memory, uint64_t bytes,
                                const void* last = nullptr) {
  auto block = memory->take(bytes, last);
  EXPECT_TRUE(block);
  EXPECT_GE((*block)->arena->size(), bytes);
  return *std::move(block);
}

TEST(ActivationMemoryTest, ExecutionsOneAfterTheOtherHaveOneArena) {
  ActivationMemory memory;
  auto block = take(&memory, kSmall);
  memory.giveBack(std::move(block));
  block = take(&memory, kLarge);
  const void* const arena = block->arena->data();
  memory.giveBack(std::move(block));
  block = take(&memory, kSmall);
  EXPECT_EQ(block->arena->data(), arena);
  memory.giveBack(std::move(block));
  EXPECT_EQ(take(&memory, kLarge)->arena->data(), arena);
}

TEST(ActivationMemoryTest, ExecutionsAtOnceHaveArenasOfTheirOwnAndFindThemAgain) {
  ActivationMemory memory;
  auto first = take(&memory, kSmall);
  auto second = take(&memory, kSmall);
  const void* const arenas[] = {first->arena->data(), second->arena->data()};
  EXPECT_NE(arenas[0], arenas[1]);
  memory.giveBack(std::move(first));
  memory.giveBack(std::move(second));
  for (const void* const arena : arenas) {
    auto again = take(&memory, kSmall, arena);
    EXPECT_EQ(again->arena->data(), arena);
    memory.giveBack(std::move(again));
  }
}

TEST(ActivationMemoryTest, NoTwoThreadsHaveOneArena) {
  ActivationMemory memory;
  std::atomic<int> shared = 0;
  std::vector<std::jthread> threads;
  for (int id = 1; id <= 4; ++id)
    threads.emplace_back([&, id] {
      const void* last = nullptr;
      for (int i = 0; i < 2000; ++i) {
        auto block = take(&memory, i % 16 == 0 ? kLarge : kSmall, last);
        uint8_t* const arena = block->arena->data();
        last = arena;
        std::memset(arena, id, 64);
        std::this_thread::yield();
        if (arena[0] != id || arena[63] != id) ++shared;
        memory.giveBack(std::move(block));
      }
    });
  threads.clear();
  EXPECT_EQ(shared, 0);
}

TEST(ActivationMemoryTest, ASmallExecutionLeavesALargeArenaToOthers) {
  ActivationMemory memory;
  auto large = take(&memory, kLarge);
  auto small = take(&memory, kSmall);
  const void* const largeArena = large->arena->data();
  const void* const smallArena = small->arena->data();
  memory.giveBack(std::move(small));
  memory.giveBack(std::move(large));
  small = take(&memory, kSmall, largeArena);
  EXPECT_EQ(small->arena->data(), smallArena);
  EXPECT_EQ(take(&memory, kLarge)->arena->data(), largeArena);
}

TEST(ActivationMemoryTest, WhatIsReservedIsMadeOnce) {
  class Counting final : public memory::Budget {
   public:
    Result<std::shared_ptr<void>> reserve(uint64_t bytes) override {
      if (bytes > left) return fail(ErrorCode::kResourceExhaustedTransient, "There is no more.");
      left -= bytes;
      return std::shared_ptr<void>();
    }
    uint64_t left = kLarge + kSmall;
  };
  Counting budget;
  const memory::BudgetScope scope(&budget);
  ActivationMemory memory;
  ASSERT_TRUE(memory.reserve(kSmall));
  ASSERT_TRUE(memory.reserve(kLarge));
  EXPECT_EQ(budget.left, 0u);
  EXPECT_TRUE(memory.reserve(kSmall));
  EXPECT_TRUE(memory.reserve(kLarge));
  // Who fails leaves what there is to others.
  EXPECT_EQ(memory.reserve(kLarge + 1).error().code(), ErrorCode::kResourceExhaustedTransient);
  EXPECT_FALSE(memory.take(kLarge + 1, nullptr));
  memory.populate();
  EXPECT_EQ(take(&memory, kLarge)->arena->size(), kLarge);
}

TEST(ActivationMemoryTest, ModelsShareItWhoseConstantsLieInOnePool) {
  graph::Model model;
  EXPECT_NE(ActivationMemory::of(model), ActivationMemory::of(model));
  std::array<uint8_t, 16> bytes{};
  model.pools = {memory::Pool::borrowed(bytes.data(), bytes.size())};
  graph::Model other;
  other.pools = {memory::Pool::borrowed(bytes.data(), bytes.size())};
  const auto memory = ActivationMemory::of(model);
  EXPECT_EQ(ActivationMemory::of(model), memory);
  EXPECT_NE(ActivationMemory::of(other), memory);
}

// Doubles a number in the arena and adds one in scratch memory.
class SumKernel final : public Kernel {
 public:
  Result<size_t> reshape(threads::ThreadPool* /*pool*/) override { return kScratch; }
  Status setup(std::span<void* const> addresses, void* workspace) override {
    ++setups;
    in_ = static_cast<const float*>(addresses[0]);
    activation_ = static_cast<float*>(addresses[1]);
    out_ = static_cast<float*>(addresses[2]);
    scratch_ = static_cast<float*>(workspace);
    return {};
  }
  Status run(threads::ThreadPool* /*pool*/) override {
    *activation_ = 2 * *in_;
    *scratch_ = 1;
    *out_ = *activation_ + *scratch_;
    return {};
  }

  static constexpr size_t kScratch = 256;
  static inline int setups = 0;

 private:
  const float* in_ = nullptr;
  float* activation_ = nullptr;
  float* out_ = nullptr;
  float* scratch_ = nullptr;
};

Plan sumPlan(uint64_t arenaBytes) {
  Plan plan;
  plan.values.resize(3);
  for (ValueId id = 0; id < 3; ++id) {
    plan.values[id].root = id;
    plan.values[id].bytes = sizeof(float);
  }
  plan.values[0].place = Value::Place::kInput;
  plan.values[2].place = Value::Place::kOutput;
  plan.arenaBytes = arenaBytes;
  plan.nodes.resize(1);
  plan.nodes[0].inputs = {0};
  plan.nodes[0].outputs = {1, 2};
  plan.nodes[0].create = [] {
    return std::make_unique<SumKernel>();
  };
  return plan;
}

TEST(ActivationMemoryTest, AContextRunsInMemoryThatOthersHadMeanwhile) {
  const auto memory = std::make_shared<ActivationMemory>();
  const Plan small = sumPlan(kSmall);
  const Plan large = sumPlan(kLarge);
  const auto contextOf = [&](const Plan& plan) {
    auto made =
        ExecutionContext::create(plan, std::make_shared<KernelFactory>(plan, nullptr), memory);
    EXPECT_TRUE(made);
    return *std::move(made);
  };
  const auto first = contextOf(small);
  const auto second = contextOf(large);
  SumKernel::setups = 0;
  std::array<float, 16> in{};
  std::array<float, 16> out{};
  const auto run = [&](ExecutionContext* context) {
    in[0] += 1;
    const ExecutionContext::Buffer input{in.data(), sizeof(float), true};
    const ExecutionContext::Buffer output{out.data(), sizeof(float), true};
    EXPECT_TRUE(context->run({&input, 1}, {&output, 1}, nullptr, base::Deadline()));
    EXPECT_EQ(out[0], 2 * in[0] + 1);
  };
  run(first.get());
  run(second.get());
  // Each was set up when scratch memory had been made, and nothing changes any more.
  const int setups = SumKernel::setups;
  for (int i = 0; i < 3; ++i) {
    run(first.get());
    run(second.get());
  }
  EXPECT_EQ(SumKernel::setups, setups);
  // An execution that runs at the same time has the memory.
  auto taken = take(memory.get(), kLarge);
  run(first.get());
  EXPECT_EQ(SumKernel::setups, setups + 1);
  memory->giveBack(std::move(taken));
  run(first.get());
  run(second.get());
}

}  // namespace
}  // namespace hearth::cpu
