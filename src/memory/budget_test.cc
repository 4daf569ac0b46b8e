// SPDX-License-Identifier: Apache-2.0
#include "memory/budget.h"

#include <gtest/gtest.h>

#include <thread>

namespace hearth::memory {
namespace {

class TenBytes final : public Budget {
 public:
  Result<std::shared_ptr<void>> reserve(uint64_t bytes) override {
    if (bytes > 10 - taken_) return fail(ErrorCode::kResourceExhaustedTransient, "Too much.");
    taken_ += bytes;
    return std::shared_ptr<void>(nullptr, [this, bytes](void*) { taken_ -= bytes; });
  }
  uint64_t taken() const { return taken_; }

 private:
  uint64_t taken_ = 0;
};

TEST(Budget, CountsForWhomTheThreadWorks) {
  TenBytes first;
  TenBytes second;
  const auto free = reserveRoom(100);
  ASSERT_TRUE(free);
  EXPECT_EQ(*free, nullptr);
  std::shared_ptr<void> kept;
  {
    const BudgetScope outer(&first);
    auto room = reserveRoom(8);
    ASSERT_TRUE(room) << room.error().toString();
    kept = std::move(*room);
    EXPECT_EQ(reserveRoom(3).error().code(), ErrorCode::kResourceExhaustedTransient);
    {
      const BudgetScope inner(&second);
      EXPECT_TRUE(reserveRoom(10));
      EXPECT_EQ(second.taken(), 0u);
      const BudgetScope none(nullptr);
      EXPECT_TRUE(reserveRoom(100));
    }
    EXPECT_FALSE(reserveRoom(3));
    // Another thread works for nobody yet.
    std::thread([] { EXPECT_TRUE(reserveRoom(100)); }).join();
  }
  EXPECT_EQ(first.taken(), 8u);
  kept.reset();
  EXPECT_EQ(first.taken(), 0u);
}

}  // namespace
}  // namespace hearth::memory
