// SPDX-License-Identifier: Apache-2.0
#include "cache/store/build_ticket.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "cache/testing/store_test_util.h"

namespace hearth::cache {
namespace {

class BuildTicketTest : public testing::Test {
 protected:
  BuildLock::Outcome acquire(BuildLock::Hold& hold) const {
    return lock_->acquire(key_, std::chrono::milliseconds(1), [] { return false; }, hold);
  }
  BuildTicket ticket() {
    BuildLock::Hold hold;
    EXPECT_EQ(acquire(hold), BuildLock::Outcome::kHeld);
    return BuildTicket(std::move(hold), std::exchange(guard_, nullptr));
  }
  bool isFree() const {
    BuildLock::Hold hold;
    return acquire(hold) == BuildLock::Outcome::kHeld;
  }

  const std::shared_ptr<BuildLock> lock_ = BuildLock::inProcess();
  const SegmentKey key_ = segmentKey(1);
  std::shared_ptr<void> guard_ = std::make_shared<int>();
  const std::weak_ptr<void> guarded_ = guard_;
};

TEST_F(BuildTicketTest, NothingIsHeldByWhoBuildsAlone) {
  const BuildTicket none;
  EXPECT_EQ(none.role(), BuildTicket::Role::kAlone);
  EXPECT_EQ(none.segment(), nullptr);
  EXPECT_TRUE(isFree());
}

TEST_F(BuildTicketTest, OthersBuildWhenItIsReleased) {
  BuildTicket held = ticket();
  EXPECT_EQ(held.role(), BuildTicket::Role::kBuild);
  EXPECT_EQ(held.segment(), nullptr);
  EXPECT_FALSE(isFree());
  held.release();
  EXPECT_TRUE(isFree());
  EXPECT_TRUE(guarded_.expired());
  held.release();
}

TEST_F(BuildTicketTest, IsReleasedByTheLastOwner) {
  {
    BuildTicket first = ticket();
    const BuildTicket second = std::move(first);
    EXPECT_EQ(second.role(), BuildTicket::Role::kBuild);
    EXPECT_FALSE(isFree());
    EXPECT_FALSE(guarded_.expired());
  }
  EXPECT_TRUE(isFree());
  EXPECT_TRUE(guarded_.expired());
}

TEST_F(BuildTicketTest, BringsASegmentThatIsThere) {
  const auto bytes = std::make_shared<const std::vector<uint8_t>>(payload(1, 100));
  const auto segment = std::make_shared<const Segment>(key_, std::span(*bytes), bytes);
  const BuildTicket found{SegmentRef(segment)};
  EXPECT_EQ(found.role(), BuildTicket::Role::kFound);
  EXPECT_EQ(found.segment(), segment);
  EXPECT_TRUE(isFree());
}

}  // namespace
}  // namespace hearth::cache
