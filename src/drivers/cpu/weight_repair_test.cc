// SPDX-License-Identifier: Apache-2.0
// Cases that DamagedStartTest leaves out: models that have nothing to repair.
#include "drivers/cpu/weight_repair.h"

#include <gtest/gtest.h>

#include "drivers/cpu/platform/thread_pools.h"

namespace hearth::cpu {
namespace {

TEST(WeightRepairTest, ASegmentThatTheModelDoesNotUseIsForgotten) {
  WeightRepair repair(std::make_shared<const graph::Model>(), std::make_shared<PackedWeights>(),
                      sharedThreadPool(1).value());
  EXPECT_FALSE(repair.hasWrong());
  repair.noteWrong({});
  EXPECT_TRUE(repair.hasWrong());
  const auto replaced = repair.replaceWrong({});
  ASSERT_TRUE(replaced) << replaced.error().toString();
  EXPECT_TRUE(replaced->empty());
  EXPECT_FALSE(repair.hasWrong());
  EXPECT_TRUE(repair.replaceLost({})->empty());
}

}  // namespace
}  // namespace hearth::cpu
