// SPDX-License-Identifier: Apache-2.0
// Whoever calls hearth-cpu is told of the steps of its computations.
#include "hal/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "drivers/cpu/cpu_device.h"
#include "drivers/cpu/testing/run_once.h"
#include "hal/cts/model_builder.h"

namespace hearth::cpu {
namespace {

class Recorder final : public hal::Progress {
 public:
  void begins(size_t step, size_t steps) override { told.emplace_back(step, steps); }

  std::vector<std::pair<size_t, size_t>> told;
};

// Sums that need each other.
graph::Model sums(int count) {
  using graph::OperandType;
  hal::cts::ModelBuilder builder;
  uint32_t value = builder.input(OperandType::kTensorFloat32, {2});
  const uint32_t one =
      builder.constant(OperandType::kTensorFloat32, {2}, std::vector<float>{1.0f, 1.0f});
  const uint32_t none = builder.scalar(int32_t{0});
  for (int i = 1; i <= count; ++i) {
    const uint32_t next = i < count ? builder.temporary(OperandType::kTensorFloat32, {2})
                                    : builder.output(OperandType::kTensorFloat32, {2});
    builder.operation(graph::OperationType::kAdd, {value, one, none}, {next});
    value = next;
  }
  return builder.model();
}

TEST(Progress, IsToldToTheThreadThatCallsAndToNobodyElse) {
  const auto prepared = createCpuDevice()->prepareModel(
      std::make_shared<const graph::Model>(sums(5)), {.threads = 2}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  const auto compute = [&] {
    EXPECT_THAT(runOnce(**prepared, {1, 2}, 2), testing::ElementsAre(6, 7));
  };
  Recorder recorder;
  compute();
  {
    const hal::ProgressScope scope(&recorder);
    EXPECT_EQ(hal::progressOfThread(), &recorder);
    compute();
    {
      const hal::ProgressScope nobody(nullptr);
      compute();
    }
  }
  EXPECT_EQ(hal::progressOfThread(), nullptr);
  compute();
  std::vector<std::pair<size_t, size_t>> all;
  for (size_t i = 0; i < 5; ++i) all.emplace_back(i, 5);
  EXPECT_EQ(recorder.told, all);
}

}  // namespace
}  // namespace hearth::cpu
