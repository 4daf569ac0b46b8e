// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace hearth::vulkan {
namespace {

constexpr uint64_t kAlignment = 64;

// When a tensor is in use: of step 0 the inputs, of the last one the outputs.
struct Life {
  size_t first = SIZE_MAX;
  size_t last = 0;

  void use(size_t step) {
    first = std::min(first, step);
    last = std::max(last, step);
  }
};

// Random tensors, and dispatches that write one each and read some that were written before.
Plan randomPlan(std::mt19937& random) {
  Plan plan;
  const auto add = [&] {
    PlannedTensor tensor;
    tensor.bytes = random() % 300 + 1;
    tensor.root = static_cast<TensorId>(plan.tensors.size());
    plan.tensors.push_back(std::move(tensor));
    return plan.tensors.back().root;
  };
  for (int i = 0; i < 2; ++i) plan.inputs.push_back(add());
  for (uint32_t i = random() % 10 + 2; i > 0; --i) {
    Dispatch dispatch;
    for (int reads = 0; reads < 2; ++reads)
      dispatch.bindings.push_back({static_cast<TensorId>(random() % plan.tensors.size())});
    dispatch.bindings.push_back({add(), true});
    plan.dispatches.push_back(std::move(dispatch));
  }
  for (int i = 0; i < 2; ++i)
    plan.outputs.push_back(static_cast<TensorId>(random() % plan.tensors.size()));
  plan.fault = plan.dispatches[0].bindings.back().tensor;
  return plan;
}

TEST(PlanTest, TensorsThatAreInUseAtOneTimeLieApart) {
  std::mt19937 random(41);
  bool isShared = false;
  for (int round = 0; round < 200; ++round) {
    Plan plan = randomPlan(random);
    ASSERT_TRUE(placeTensors(&plan, kAlignment, 0));
    std::vector<Life> lives(plan.tensors.size());
    const size_t end = plan.dispatches.size() + 1;
    for (const TensorId input : plan.inputs) lives[input].use(0);
    for (size_t i = 0; i < plan.dispatches.size(); ++i)
      for (const Binding& binding : plan.dispatches[i].bindings) lives[binding.tensor].use(i + 1);
    for (const TensorId output : plan.outputs) lives[output].use(end);
    lives[plan.fault].use(end);
    for (size_t a = 0; a < lives.size(); ++a) {
      const PlannedTensor& left = plan.tensors[a];
      EXPECT_EQ(left.offset % kAlignment, 0u);
      EXPECT_LE(left.offset + left.bytes, plan.arenaBytes);
      for (size_t b = 0; b < a; ++b) {
        const PlannedTensor& right = plan.tensors[b];
        const bool overlap =
            left.offset < right.offset + right.bytes && right.offset < left.offset + left.bytes;
        const bool isAtOneTime = lives[a].first <= lives[b].last && lives[b].first <= lives[a].last;
        EXPECT_FALSE(overlap && isAtOneTime) << a << " and " << b << " of round " << round;
        isShared = isShared || overlap;
      }
    }
  }
  EXPECT_TRUE(isShared);
}

TEST(PlanTest, ATensorThatDoesNotFitIsNamed) {
  std::mt19937 random(1);
  Plan plan = randomPlan(random);
  for (PlannedTensor& tensor : plan.tensors) tensor.name = "large";
  ASSERT_TRUE(placeTensors(&plan, kAlignment, 0));
  const uint64_t needed = plan.arenaBytes;
  EXPECT_TRUE(placeTensors(&plan, kAlignment, needed));
  const Status placed = placeTensors(&plan, kAlignment, needed - 1);
  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_NE(placed.error().message().find("large"), std::string::npos);
}

}  // namespace
}  // namespace hearth::vulkan
