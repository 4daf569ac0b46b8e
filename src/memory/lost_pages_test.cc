// SPDX-License-Identifier: Apache-2.0
#include "memory/lost_pages.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csetjmp>
#include <thread>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "memory/mapping.h"

namespace hearth::memory {
namespace {

constexpr size_t kSize = size_t{1} << 20;

class LostPagesTest : public testing::Test {
 protected:
  LostPagesTest() : file_(::memfd_create("lost-pages", MFD_CLOEXEC)) {
    const std::vector<uint8_t> content(kSize, 7);
    EXPECT_EQ(::pwrite(file_.get(), content.data(), kSize, 0), static_cast<ssize_t>(kSize));
    mapping_ = Mapping::ofFile(file_.get(), 0, kSize, Mapping::Access::kReadOnly).value();
  }
  size_t countOf(uint8_t value) const {
    return static_cast<size_t>(std::count(mapping_.data(), mapping_.data() + kSize, value));
  }

  base::Descriptor file_;
  Mapping mapping_;
};

TEST_F(LostPagesTest, AreZerosAndTold) {
  WatchedPages watched(mapping_.data(), kSize);
  EXPECT_EQ(countOf(7), kSize);
  EXPECT_FALSE(watched.hasLosses());
  const uint64_t before = lossCount();
  ASSERT_EQ(::ftruncate(file_.get(), kSize / 4), 0);
  EXPECT_EQ(countOf(0), kSize - kSize / 4);
  EXPECT_EQ(countOf(7), kSize / 4);
  EXPECT_TRUE(watched.hasLosses());
  EXPECT_GT(lossCount(), before);
  watched.forgetLosses();
  EXPECT_FALSE(watched.hasLosses());
}

TEST_F(LostPagesTest, SeveralThreadsMeetThem) {
  const WatchedPages watched(mapping_.data(), kSize);
  ASSERT_EQ(::ftruncate(file_.get(), 0), 0);
  std::vector<std::thread> threads;
  std::atomic<size_t> zeros = 0;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { zeros += countOf(0); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(zeros, 4 * kSize);
  EXPECT_TRUE(watched.hasLosses());
}

TEST_F(LostPagesTest, BelongToTheirRanges) {
  WatchedPages first(mapping_.data(), kSize / 2);
  const WatchedPages second(mapping_.data() + kSize / 2, kSize / 2);
  WatchedPages moved = std::move(first);
  ASSERT_EQ(::ftruncate(file_.get(), kSize / 2), 0);
  EXPECT_EQ(countOf(0), kSize / 2);
  EXPECT_FALSE(moved.hasLosses());
  EXPECT_FALSE(first.hasLosses());
  EXPECT_TRUE(second.hasLosses());
}

TEST_F(LostPagesTest, PlacesOfEndedRangesAreUsedAgain) {
  constexpr size_t kPart = kSize / 16;
  const auto watch = [&](size_t part) {
    return WatchedPages(mapping_.data() + part * kPart, kPart);
  };
  std::vector<WatchedPages> first;
  for (size_t i = 0; i < 8; ++i) first.push_back(watch(i));
  // From the middle, then from the front, then all that is left.
  first.erase(first.begin() + 4);
  const WatchedPages fourth = watch(4);
  first.erase(first.begin());
  const WatchedPages zeroth = watch(0);
  first.clear();
  std::vector<WatchedPages> second;
  for (size_t i = 8; i < 16; ++i) second.push_back(watch(i));
  ASSERT_EQ(::ftruncate(file_.get(), 0), 0);
  for (const size_t part : {0, 4, 8, 9, 10, 11, 12, 13, 14, 15})
    EXPECT_EQ(mapping_.data()[part * kPart], 0) << part;
  EXPECT_TRUE(zeroth.hasLosses());
  EXPECT_TRUE(fourth.hasLosses());
  for (const WatchedPages& watched : second) EXPECT_TRUE(watched.hasLosses());
}

// The handler before ours gets what is not watched.
TEST_F(LostPagesTest, OthersAreNotTouched) {
  const WatchedPages watched(mapping_.data(), kSize / 2);
  ASSERT_EQ(::ftruncate(file_.get(), 0), 0);
  EXPECT_DEATH(
      { static_cast<void>(*static_cast<volatile uint8_t*>(mapping_.data() + kSize / 2)); }, "");
}

}  // namespace
}  // namespace hearth::memory
