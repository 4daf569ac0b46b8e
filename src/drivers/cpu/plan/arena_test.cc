// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "drivers/cpu/plan/plan.h"

namespace hearth::cpu {
namespace {

ValueId addValue(Plan* plan, uint64_t bytes, Value::Place place = Value::Place::kArena) {
  Value value;
  value.bytes = bytes;
  value.place = place;
  value.root = static_cast<ValueId>(plan->values.size());
  value.name = value.root == 0 ? "v0" : "another one";
  plan->values.push_back(value);
  return value.root;
}

void addNode(Plan* plan, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
             std::vector<uint32_t> inPlace = {}) {
  Node node;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  node.inPlaceInputs = std::move(inPlace);
  plan->nodes.push_back(std::move(node));
}

// Expects that no two roots that are in use at the same node share a byte.
void expectDisjoint(const Plan& plan) {
  for (ValueId a = 0; a < plan.values.size(); ++a) {
    for (ValueId b = a + 1; b < plan.values.size(); ++b) {
      const Value& first = plan.values[a];
      const Value& second = plan.values[b];
      if (first.root != a || second.root != b) continue;
      if (first.place != Value::Place::kArena || second.place != Value::Place::kArena) continue;
      if (first.firstNode < 0 || second.firstNode < 0) continue;
      if (first.lastNode < second.firstNode || second.lastNode < first.firstNode) continue;
      const uint64_t firstEnd = first.arenaOffset + first.bytes + kReadSlack;
      const uint64_t secondEnd = second.arenaOffset + second.bytes + kReadSlack;
      EXPECT_TRUE(firstEnd <= second.arenaOffset || secondEnd <= first.arenaOffset)
          << a << " and " << b;
      EXPECT_LE(firstEnd, plan.arenaBytes);
    }
  }
}

TEST(Arena, ChainNeedsTwoBuffers) {
  Plan plan;
  const ValueId input = addValue(&plan, 1000, Value::Place::kInput);
  ValueId last = input;
  for (int i = 0; i < 10; ++i) {
    const ValueId next = addValue(&plan, 10000);
    addNode(&plan, {last}, {next});
    last = next;
  }
  const ValueId output = addValue(&plan, 10, Value::Place::kOutput);
  addNode(&plan, {last}, {output});
  ASSERT_TRUE(planArena(&plan, 0));
  expectDisjoint(plan);
  EXPECT_LE(plan.arenaBytes, 2 * 10112u);
}

TEST(Arena, AddTakesOverADyingInput) {
  Plan plan;
  const ValueId input = addValue(&plan, 5000, Value::Place::kInput);
  const ValueId left = addValue(&plan, 5000);
  const ValueId right = addValue(&plan, 5000);
  const ValueId sum = addValue(&plan, 5000);
  const ValueId output = addValue(&plan, 5000, Value::Place::kOutput);
  addNode(&plan, {input}, {left});
  addNode(&plan, {input}, {right});
  addNode(&plan, {left, right}, {sum}, {0, 1});
  addNode(&plan, {sum}, {output});
  ASSERT_TRUE(planArena(&plan, 0));
  EXPECT_EQ(plan.resolve(sum).root, left);
  expectDisjoint(plan);
}

TEST(Arena, AddLeavesAnInputThatIsReadLater) {
  Plan plan;
  const ValueId left = addValue(&plan, 5000);
  const ValueId sum = addValue(&plan, 5000);
  const ValueId output = addValue(&plan, 5000, Value::Place::kOutput);
  addNode(&plan, {}, {left});
  addNode(&plan, {left, left}, {sum}, {0, 1});
  addNode(&plan, {sum, left}, {output});
  ASSERT_TRUE(planArena(&plan, 0));
  EXPECT_EQ(plan.resolve(sum).root, sum);
  expectDisjoint(plan);
}

TEST(Arena, LimitNamesTheTensor) {
  Plan plan;
  const ValueId big = addValue(&plan, 1 << 20);
  addNode(&plan, {}, {big});
  const auto status = planArena(&plan, 1 << 19);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_NE(status.error().message().find("\"v0\""), std::string::npos);
}

TEST(Arena, RandomGraphsNeverOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Plan plan;
    std::vector<ValueId> values{addValue(&plan, 100, Value::Place::kInput)};
    for (int n = 0; n < 30; ++n) {
      std::vector<ValueId> inputs;
      for (int i = 0; i < 2; ++i) inputs.push_back(values[random() % values.size()]);
      const ValueId out = addValue(&plan, 64 + random() % 4 * 1000);
      addNode(&plan, inputs, {out},
              random() % 2 ? std::vector<uint32_t>{0, 1} : std::vector<uint32_t>{});
      values.push_back(out);
    }
    ASSERT_TRUE(planArena(&plan, 0));
    expectDisjoint(plan);
  }
}

}  // namespace
}  // namespace hearth::cpu
