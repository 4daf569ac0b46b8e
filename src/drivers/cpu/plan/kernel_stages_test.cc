// SPDX-License-Identifier: Apache-2.0
// A model in use is measured and enters its second stage; its next start begins in that stage.
#include "drivers/cpu/plan/kernel_stages.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <string>
#include <thread>

#include "cache/testing/store_test_util.h"
#include "drivers/cpu/cpu_device.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "drivers/cpu/testing/run_once.h"
#include "drivers/cpu/weights/open_stores.h"
#include "drivers/cpu/weights/weight_session.h"
#include "hal/cts/model_builder.h"

namespace hearth::cpu {
namespace {

using graph::OperandType;
using graph::OperationType;
using Which = KernelChoice::Which;
using Tuning = hal::TuningReport::State;

constexpr uint32_t kSide = 24;
constexpr uint32_t kFilters = 16;
constexpr uint32_t kClasses = 10;
constexpr size_t kInputs = size_t{kSide} * kSide * 3;

std::vector<float> randomFloats(size_t count, uint32_t seed, float scale) {
  std::vector<float> values(count);
  for (float& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = scale * (static_cast<float>(seed >> 8) / (1u << 24) - 0.5f);
  }
  return values;
}

// An image of three channels goes through CONV_2D, RELU, ADD and FULLY_CONNECTED. Two of these
// operations have a second kernel.
std::shared_ptr<const graph::Model> pictureModel() {
  hal::cts::ModelBuilder builder;
  const auto type = OperandType::kTensorFloat32;
  const uint32_t in = builder.input(type, {1, kSide, kSide, 3});
  const uint32_t wide = builder.temporary(type, {1, kSide, kSide, kFilters});
  const uint32_t positive = builder.temporary(type, {1, kSide, kSide, kFilters});
  const uint32_t sum = builder.temporary(type, {1, kSide, kSide, kFilters});
  const uint32_t out = builder.output(type, {1, kClasses});
  const size_t features = size_t{kSide} * kSide * kFilters;
  const uint32_t filter =
      builder.constant(type, {kFilters, 5, 5, 3}, randomFloats(kFilters * 75, 1, 0.2f));
  const uint32_t bias = builder.constant(type, {kFilters}, randomFloats(kFilters, 2, 0.2f));
  const uint32_t matrix = builder.constant(type, {kClasses, static_cast<uint32_t>(features)},
                                           randomFloats(kClasses * features, 3, 0.02f));
  const uint32_t matrixBias = builder.constant(type, {kClasses}, randomFloats(kClasses, 4, 0.2f));
  const uint32_t same = builder.scalar(1);
  const uint32_t one = builder.scalar(1);
  const uint32_t none = builder.scalar(0);
  builder.operation(OperationType::kConv2d, {in, filter, bias, same, one, one, none}, {wide});
  builder.operation(OperationType::kRelu, {wide}, {positive});
  builder.operation(OperationType::kAdd, {positive, wide, none}, {sum});
  builder.operation(OperationType::kFullyConnected, {sum, matrix, matrixBias, none}, {out});
  return std::make_shared<const graph::Model>(builder.model());
}

class KernelStagesTest : public cache::StoreTest {
 protected:
  std::shared_ptr<hal::PreparedModel> prepare(bool isTuned = true) {
    hal::PrepareOptions prepare = prepareOptions();
    prepare.isTuned = isTuned;
    auto prepared = device_->prepareModel(model_, prepare, hal::Cache());
    EXPECT_TRUE(prepared) << prepared.error().toString();
    return prepared ? *prepared : nullptr;
  }
  hal::PrepareOptions prepareOptions() {
    hal::PrepareOptions prepare;
    prepare.threads = 2;
    cache::StoreOptions store = options();
    store.mode = mode_;
    if (inBundle_) store.bundle = (folder_.path() / "model.bundle").string();
    prepare.driverOptions = store.toTexts();
    return prepare;
  }

  // Waits for the work of the store in the background.
  void settle() { openStore(prepareOptions())->settle(); }

  static std::vector<float> run(hal::PreparedModel& prepared) {
    return runOnce(prepared, randomFloats(kInputs, 9, 2), kClasses);
  }

  static void expectNear(const std::vector<float>& got, const std::vector<float>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    float largest = 0;
    for (const float value : expected) largest = std::max(largest, std::fabs(value));
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], largest * 2e-6f) << i;
  }

  // Runs the model until its second stage begins.
  void tune(hal::PreparedModel& prepared, const std::vector<float>& expected) {
    for (int i = 0; i < 3000; ++i) {
      if (prepared.startReport().tuning.state != Tuning::kMeasuring) return;
      expectNear(run(prepared), expected);
    }
    ADD_FAILURE() << "measures without end";
  }

  // A start finds everything in the store, also which kernels to begin with.
  void expectRecalled(const std::vector<float>& expected) {
    const auto second = prepare();
    const hal::StartReport report = second->startReport();
    EXPECT_EQ(report.tuning.state, Tuning::kRecalled);
    EXPECT_EQ(report.state, hal::StartReport::State::kWarm) << report.reason;
    EXPECT_TRUE(report.packedBytes.empty());
    expectNear(run(*second), expected);
  }

  // Leaves choices in the store as an earlier process would.
  void leaveChoices(const std::vector<uint8_t>& bytes, unsigned threads = 2) {
    const auto session = std::make_shared<WeightSession>(openStore(prepareOptions()), model_,
                                                         std::make_shared<PackedWeights>(),
                                                         prepareOptions(), threads);
    session->load();
    session->remember("hearth-cpu kernels", bytes);
  }

  size_t nodeCount() const {
    PlanBuilder builder(*model_, nullptr, {});
    EXPECT_TRUE(builder.build());
    return builder.takePlan().nodes.size();
  }

  bool inBundle_ = false;
  cache::StoreMode mode_ = cache::StoreMode::kReadWrite;
  const std::shared_ptr<const graph::Model> model_ = pictureModel();
  const std::shared_ptr<hal::Device> device_ = createCpuDevice();
};

TEST_F(KernelStagesTest, SomeOperationsHaveAnotherKernel) {
  PlanBuilder builder(*model_, nullptr, {});
  ASSERT_TRUE(builder.build());
  size_t others = 0;
  for (const Node& node : builder.takePlan().nodes) others += node.createOther != nullptr;
  EXPECT_EQ(others, 2u);
}

TEST_F(KernelStagesTest, TheSecondStageBeginsAndIsRemembered) {
  const std::vector<float> expected = run(*prepare(false));
  {
    const auto first = prepare();
    EXPECT_EQ(first->startReport().tuning.state, Tuning::kMeasuring);
    tune(*first, expected);
    const hal::TuningReport report = first->startReport().tuning;
    EXPECT_EQ(report.state, Tuning::kMeasured);
    EXPECT_GE(report.executions, 24u);
    for (int i = 0; i < 10; ++i) expectNear(run(*first), expected);
    settle();
  }
  expectRecalled(expected);
}

TEST_F(KernelStagesTest, ABundleRemembersTheSecondStageToo) {
  inBundle_ = true;
  const std::vector<float> expected = run(*prepare(false));
  settle();
  {
    const auto first = prepare();
    EXPECT_EQ(first->startReport().tuning.state, Tuning::kMeasuring);
    tune(*first, expected);
  }
  settle();
  // Reads the bundle anew from the file.
  mode_ = cache::StoreMode::kStrict;
  expectRecalled(expected);
}

// As the second kernels of operations pack, where they have packings of their own.
TEST_F(KernelStagesTest, WhatIsPackedAfterPublishingIsFoundByTheNextStart) {
  const auto packedBy = [&] {
    const auto weights = std::make_shared<PackedWeights>();
    const auto session = std::make_shared<WeightSession>(openStore(prepareOptions()), model_,
                                                         weights, prepareOptions(), 2);
    session->load();
    PlanBuilder builder(*model_, weights.get(), {});
    EXPECT_TRUE(builder.build());
    const Plan plan = builder.takePlan();
    EXPECT_TRUE(plan.nodes.front().create());
    session->publish();
    settle();
    for (const Node& node : plan.nodes) EXPECT_TRUE(node.create());
    session->publishAgain();
    settle();
    return weights->packedBytes();
  };
  EXPECT_FALSE(packedBy().empty());
  EXPECT_TRUE(packedBy().empty());
}

// Each number of threads has choices of its own.
TEST_F(KernelStagesTest, ChoicesForOtherThreadsStay) {
  inBundle_ = true;
  (void)prepare(false);
  settle();
  const size_t nodes = nodeCount();
  for (const uint32_t threads : {1u, 2u}) {
    MeasuredChoices measured;
    measured.threads = threads;
    measured.choices.assign(nodes, {Which::kFirst, threads == 2});
    leaveChoices(measured.encoded(), threads);
  }
  settle();
  mode_ = cache::StoreMode::kStrict;
  for (const uint32_t threads : {1u, 2u}) {
    hal::PrepareOptions options = prepareOptions();
    options.isTuned = true;
    options.threads = threads;
    const auto prepared = device_->prepareModel(model_, options, hal::Cache());
    ASSERT_TRUE(prepared) << prepared.error().toString();
    const hal::TuningReport report = (*prepared)->startReport().tuning;
    EXPECT_EQ(report.state, Tuning::kRecalled) << threads;
    EXPECT_EQ(report.changedNodes, threads == 2 ? nodes : 0u);
  }
}

TEST_F(KernelStagesTest, NothingIsMeasuredUnlessAskedFor) {
  const auto prepared = prepare(false);
  const std::vector<float> expected = run(*prepared);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(run(*prepared), expected);
  EXPECT_EQ(prepared->startReport().tuning.state, Tuning::kOff);
}

TEST_F(KernelStagesTest, ChoicesOfAnEarlierProcessAreInForceAtOnce) {
  const std::vector<float> expected = run(*prepare(false));
  settle();
  MeasuredChoices measured;
  measured.threads = 2;
  measured.choices.assign(nodeCount(), {Which::kFirst, true});
  PlanBuilder builder(*model_, nullptr, {});
  ASSERT_TRUE(builder.build());
  const Plan plan = builder.takePlan();
  for (size_t node = 0; node < plan.nodes.size(); ++node)
    if (plan.nodes[node].createOther != nullptr) measured.choices[node].which = Which::kOther;
  leaveChoices(measured.encoded());
  const auto prepared = prepare();
  for (int i = 0; i < 100; ++i) expectNear(run(*prepared), expected);
  const hal::TuningReport report = prepared->startReport().tuning;
  EXPECT_EQ(report.state, Tuning::kRecalled);
  EXPECT_EQ(report.changedNodes, plan.nodes.size());
}

TEST_F(KernelStagesTest, ChoicesThatDoNotFitAreNotUsed) {
  const std::vector<float> expected = run(*prepare(false));
  settle();
  const size_t nodes = nodeCount();
  const auto expectUnused = [&](const std::vector<uint8_t>& bytes) {
    leaveChoices(bytes);
    const auto prepared = prepare();
    EXPECT_EQ(prepared->startReport().tuning.state, Tuning::kMeasuring);
    EXPECT_EQ(run(*prepared), expected);
  };
  MeasuredChoices otherThreads;
  otherThreads.threads = 3;
  otherThreads.choices.resize(nodes);
  expectUnused(otherThreads.encoded());
  MeasuredChoices otherPlan;
  otherPlan.threads = 2;
  otherPlan.choices.resize(nodes + 1);
  expectUnused(otherPlan.encoded());
  // These select second kernels for nodes that have none.
  MeasuredChoices unknown;
  unknown.threads = 2;
  unknown.choices.assign(nodes, {Which::kOther, false});
  expectUnused(unknown.encoded());
  expectUnused({1, 2, 3});
}

TEST_F(KernelStagesTest, ExecutionsAtOnceAreRightInEitherStage) {
  const std::vector<float> expected = run(*prepare(false));
  const auto prepared = prepare();
  std::atomic<bool> isOver = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      while (!isOver) expectNear(run(*prepared), expected);
    });
  for (int i = 0; i < 100; ++i) expectNear(run(*prepared), expected);
  isOver = true;
  for (std::thread& thread : threads) thread.join();
  tune(*prepared, expected);
  threads.clear();
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 30; ++round) expectNear(run(*prepared), expected);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(KernelStagesTest, AChildGoesOnInItsParentsStage) {
  const std::vector<float> expected = run(*prepare(false));
  const auto prepared = prepare();
  for (int i = 0; i < 60; ++i) expectNear(run(*prepared), expected);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (int i = 0; i < 200; ++i) {
      const std::vector<float> got = run(*prepared);
      for (size_t k = 0; k < got.size(); ++k)
        if (std::fabs(got[k] - expected[k]) > 1e-3f) ::_exit(1);
    }
    ::_exit(0);
  }
  tune(*prepared, expected);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(KernelStagesTest, AModelThatEndsWhileItIsMeasured) {
  const std::vector<float> expected = run(*prepare(false));
  int ended = 0;
  for (int executions = 20; executions < 140; executions += 7) {
    const auto prepared = prepare();
    if (prepared->startReport().tuning.state == Tuning::kRecalled) break;
    for (int i = 0; i < executions; ++i) expectNear(run(*prepared), expected);
    if (prepared->startReport().tuning.state == Tuning::kMeasuring) ++ended;
  }
  EXPECT_GT(ended, 0) << "No model ended while it was measured.";
}

}  // namespace
}  // namespace hearth::cpu
