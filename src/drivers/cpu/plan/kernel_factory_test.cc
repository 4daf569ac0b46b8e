// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/kernel_factory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <future>
#include <latch>
#include <thread>

#include "base/fork_gate.h"
#include "base/fork_test_util.h"
#include "drivers/cpu/plan/execution_context.h"
#include "threads/thread_pool.h"

namespace hearth::cpu {
namespace {

// A kernel that needs scratch memory, fills it while it runs, and counts its runs.
class FakeKernel final : public Kernel {
 public:
  FakeKernel(size_t workspaceBytes, std::atomic<int>* runs)
      : workspaceBytes_(workspaceBytes), runs_(runs) {}
  Result<size_t> reshape(threads::ThreadPool*) override { return workspaceBytes_; }
  Status setup(std::span<void* const>, void* workspace) override {
    workspace_ = workspace;
    return {};
  }
  Status run(threads::ThreadPool*) override {
    if (workspaceBytes_ != 0) std::memset(workspace_, 0x5A, workspaceBytes_);
    ++*runs_;
    return {};
  }

 private:
  const size_t workspaceBytes_;
  void* workspace_ = nullptr;
  std::atomic<int>* runs_;
};

class KernelFactoryTest : public ::testing::Test {
 protected:
  // Adds a node that waits for `gate`, unless that is null, before its kernel is built.
  void add(size_t workspaceBytes = 0, std::latch* gate = nullptr) {
    const size_t index = plan_.nodes.size();
    Node node;
    node.operation = static_cast<uint32_t>(index);
    node.name = "FAKE";
    node.create = [this, workspaceBytes, gate]() -> Result<std::unique_ptr<Kernel>> {
      if (gate != nullptr) gate->wait();
      ++made_;
      return std::make_unique<FakeKernel>(workspaceBytes, &runs_);
    };
    plan_.nodes.push_back(std::move(node));
  }
  void addRefused() {
    add();
    plan_.nodes.back().create = []() -> Result<std::unique_ptr<Kernel>> {
      return fail(ErrorCode::kUnsupported, "It is refused.");
    };
  }

  // Waits for a forked process, which has to end with 0.
  static void expectSuccess(pid_t child) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }

  Plan plan_;
  std::atomic<int> made_ = 0;
  std::atomic<int> runs_ = 0;
  std::atomic<int> completed_ = 0;
  std::atomic<int> afterwards_ = 0;
};

TEST_F(KernelFactoryTest, BuildsAheadAndReportsOnce) {
  for (int i = 0; i < 50; ++i) add(i);
  {
    KernelFactory maker(plan_, nullptr);
    maker.makeAhead(3, [&] { ++completed_; }, [&] { ++afterwards_; });
    maker.finish();
    EXPECT_TRUE(maker.isComplete());
    EXPECT_EQ(completed_, 1);
    EXPECT_EQ(maker.workspaceBytes(), 49u);
    maker.finish();
  }
  EXPECT_EQ(made_, 50);
  EXPECT_EQ(completed_, 1);
  EXPECT_EQ(afterwards_, 1);
}

TEST_F(KernelFactoryTest, ACallerThatReachesAnUnbuiltKernelBuildsIt) {
  std::latch gate(1);
  add(0, &gate);
  add();
  KernelFactory maker(plan_, nullptr);
  maker.makeAhead(1, [&] { ++completed_; }, [] {});
  // The factory's thread is held at the first kernel.
  EXPECT_TRUE(maker.get(1));
  EXPECT_FALSE(maker.isComplete());
  EXPECT_EQ(completed_, 0);
  gate.count_down();
  EXPECT_TRUE(maker.get(0));
  maker.finish();
  EXPECT_EQ(completed_, 1);
  EXPECT_EQ(made_, 2);
}

TEST_F(KernelFactoryTest, ARefusalReachesTheCallerThatNeedsTheKernel) {
  add();
  addRefused();
  add();
  KernelFactory ahead(plan_, nullptr);
  ahead.makeAhead(1, [&] { ++completed_; }, [] {});
  EXPECT_TRUE(ahead.get(0));
  const auto refused = ahead.get(1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kUnsupported);
  EXPECT_TRUE(ahead.get(2));
  ahead.finish();
  EXPECT_EQ(ahead.refused(), std::vector<uint32_t>{1});
  EXPECT_EQ(completed_, 1);

  const auto pool = threads::ThreadPool::create(2);
  ASSERT_TRUE(pool);
  KernelFactory whole(plan_, pool->get());
  EXPECT_EQ(whole.makeAll().error().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(whole.refused(), std::vector<uint32_t>{1});
}

TEST_F(KernelFactoryTest, EndsBetweenTwoKernels) {
  std::latch reached(1);
  std::latch gate(1);
  add();
  plan_.nodes[0].create = [&]() -> Result<std::unique_ptr<Kernel>> {
    reached.count_down();
    gate.wait();
    return std::make_unique<FakeKernel>(0, &runs_);
  };
  for (int i = 0; i < 1000; ++i) {
    add();
    plan_.nodes.back().create = [&]() -> Result<std::unique_ptr<Kernel>> {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++made_;
      return std::make_unique<FakeKernel>(0, &runs_);
    };
  }
  {
    KernelFactory maker(plan_, nullptr);
    maker.makeAhead(1, [&] { ++completed_; }, [&] { ++afterwards_; });
    reached.wait();
    gate.count_down();
  }
  // The destructor does not wait for unbuilt kernels, and calls no handler.
  EXPECT_LT(made_, 1000);
  EXPECT_EQ(completed_, 0);
  EXPECT_EQ(afterwards_, 0);
}

TEST_F(KernelFactoryTest, AForkedChildBuildsTheMissingKernels) {
  HEARTH_SKIP_FORK_AMID_ALLOCATIONS();
  for (int i = 0; i < 200; ++i) add();
  for (int i = 0; i < 20; ++i) {
    KernelFactory maker(plan_, nullptr);
    maker.makeAhead(2, [&] { ++completed_; }, [] {});
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      bool isRight = true;
      for (size_t node = 0; node < plan_.nodes.size(); ++node)
        isRight &= maker.get(node).has_value();
      maker.finish();
      maker.end();
      ::_exit(isRight && maker.isComplete() ? 0 : 1);
    }
    expectSuccess(child);
    maker.finish();
    EXPECT_EQ(completed_, i + 1);
  }
}

// This happens when an operation is refused so late that the graph is built again. Issue: a fork in
// between waited for the thread in finish(), and that thread waited for the fork.
TEST_F(KernelFactoryTest, AForkComesWhileFinishBuildsKernelsAgain) {
  HEARTH_SKIP_FORK_AMID_ALLOCATIONS();
  const auto pool = threads::ThreadPool::create(2).value();
  for (int i = 0; i < 20; ++i) add();
  for (int round = 0; round < 20; ++round) {
    KernelFactory maker(plan_, nullptr);
    std::atomic<bool> isCompleting = false;
    maker.makeAhead(
        1,
        [&] {
          isCompleting = true;
          std::this_thread::sleep_for(std::chrono::milliseconds(3));
          EXPECT_TRUE(KernelFactory(plan_, pool.get()).makeAll());
          ++completed_;
        },
        [] {});
    std::thread finisher([&] { maker.finish(); });
    while (!isCompleting) std::this_thread::yield();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::alarm(60);
      maker.finish();
      ::_exit(maker.isComplete() ? 0 : 1);
    }
    expectSuccess(child);
    finisher.join();
    EXPECT_EQ(completed_, round + 1);
  }
}

// A thread in the ForkGate shares its work with the pool's threads, which enter the gate, too.
TEST_F(KernelFactoryTest, AForkComesWhileAThreadInTheGateBuildsKernels) {
  HEARTH_SKIP_FORK_AMID_ALLOCATIONS();
  const auto pool = threads::ThreadPool::create(2).value();
  for (int i = 0; i < 20; ++i) add();
  std::atomic<bool> isOver = false;
  std::thread repairer([&] {
    while (!isOver) {
      const base::ForkGate::Inside inside;
      EXPECT_TRUE(KernelFactory(plan_, pool.get()).makeAll());
    }
  });
  for (int i = 0; i < 50; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::alarm(60);
      ::_exit(KernelFactory(plan_, pool.get()).makeAll() ? 0 : 1);
    }
    expectSuccess(child);
  }
  isOver = true;
  repairer.join();
}

// Kernels that are built later may need more scratch memory than those that ran before them.
TEST_F(KernelFactoryTest, ScratchMemoryGrowsWhileTheContextRuns) {
  const size_t sizes[] = {100, 0, 5000, 70, 300'000, 299'000, 2'000'000};
  for (const size_t size : sizes) add(size);
  const auto kernels = std::make_shared<KernelFactory>(plan_, nullptr);
  auto context = ExecutionContext::create(plan_, kernels);
  ASSERT_TRUE(context);
  // No thread builds kernels ahead: the run builds each one when it reaches it.
  for (int run = 1; run <= 3; ++run) {
    EXPECT_TRUE((*context)->run({}, {}, nullptr, base::Deadline()));
    EXPECT_EQ(runs_, run * static_cast<int>(std::size(sizes)));
  }
  EXPECT_EQ(made_, static_cast<int>(std::size(sizes)));
}

}  // namespace
}  // namespace hearth::cpu
