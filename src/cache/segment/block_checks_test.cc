// SPDX-License-Identifier: Apache-2.0
#include "cache/segment/block_checks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "base/fork_test_util.h"
#include "cache/testing/store_test_util.h"

namespace hearth::cache {
namespace {

using Limits = BlockChecks::Limits;

class BlockChecksTest : public testing::Test {
 protected:
  // This outlives the processes of a test.
  std::map<base::Sha256Digest, uint64_t> known_;
  int questions_ = 0;
  int notes_ = 0;
  bool isLasting_ = true;

  BlockChecks::Memory memory() {
    return {.isLasting = [this] { return isLasting_; },
            .recall =
                [this](std::span<const base::Sha256Digest> ids) {
                  ++questions_;
                  std::vector<uint64_t> blocks;
                  for (const base::Sha256Digest& id : ids) {
                    const auto found = known_.find(id);
                    blocks.push_back(found == known_.end() ? 0 : found->second);
                  }
                  return blocks;
                },
            .remember =
                [this](std::span<const CheckedBlocks> checks) {
                  ++notes_;
                  for (const auto& [id, blocks, isAll] : checks)
                    known_[id] = isAll ? UINT64_MAX : blocks;
                }};
  }

  // Files by number, with their blocks.
  struct File {
    uint64_t blocks = 0;
    uint64_t wrong = UINT64_MAX;
    std::vector<uint64_t> read;  // blocks that were compared
    int ends = 0;
    bool isRight = false;
  };
  std::map<uint64_t, File> files_;

  void addAll(BlockChecks& checks) {
    for (auto& [number, file] : files_) {
      auto check = std::make_shared<BlockCheck>();
      check->id = [number] {
        return segmentKey(number).bytes;
      };
      check->blocks = file.blocks;
      check->run = [&file](uint64_t from, const BlockProgress& progress) -> StoreStatus {
        for (uint64_t i = from; i < file.blocks; ++i) {
          if (!progress(i)) return {};
          file.read.push_back(i);
          if (i == file.wrong) return storeFail(StoreReason::kCorrupt, "wrong");
        }
        return {};
      };
      check->end = [&file](const StoreStatus& status) {
        ++file.ends;
        file.isRight = status.has_value();
      };
      checks.add(std::move(check));
    }
  }

  // A process that ends immediately.
  void endAtOnce(const Limits& limits = {
                     .least = 1, .most = 10, .sample = 4, .time = std::chrono::hours(1)}) {
    BlockChecks checks(memory());
    addAll(checks);
    checks.runPart(limits);
  }

  std::vector<uint64_t> upTo(uint64_t count) const {
    std::vector<uint64_t> all;
    for (uint64_t i = 0; i < count; ++i) all.push_back(i);
    return all;
  }
};

TEST_F(BlockChecksTest, EachProcessGoesOnWhereTheLastEnded) {
  files_ = {{1, {.blocks = 25}}, {2, {.blocks = 3}}, {3, {.blocks = 14}}};
  for (int i = 0; i < 4; ++i) endAtOnce();
  EXPECT_EQ(files_[3].ends, 0);
  endAtOnce();
  for (const auto& [number, file] : files_) {
    EXPECT_EQ(file.read, upTo(file.blocks)) << number;
    EXPECT_TRUE(file.isRight) << number;
  }
  // Once everything is known, one query is enough for any number of files.
  questions_ = 0;
  endAtOnce();
  EXPECT_EQ(questions_, 1);
}

// Each query and each write of a database takes longer than the check of a small file.
TEST_F(BlockChecksTest, AnExitAsksAndWritesOnceForAllFiles) {
  for (uint64_t i = 1; i <= 100; ++i) files_[i].blocks = 1;
  const Limits limits{.least = 1, .most = 60, .time = std::chrono::hours(1)};
  endAtOnce(limits);
  EXPECT_EQ(files_[60].read, upTo(1));
  EXPECT_TRUE(files_[61].read.empty());
  EXPECT_EQ(questions_, 2) << "one about all of them together, one about each";
  EXPECT_EQ(notes_, 1);
  endAtOnce(limits);
  EXPECT_EQ(notes_, 2);
  for (const auto& [number, file] : files_) EXPECT_EQ(file.read, upTo(1)) << number;
  EXPECT_EQ(known_.size(), files_.size() + 1);
  endAtOnce(limits);
  EXPECT_EQ(notes_, 2) << "There is nothing new.";
}

// A child cannot learn in any other way what its parent's check has found.
TEST_F(BlockChecksTest, AForkComesBeforeOrAfterTheEndOfACheck) {
  HEARTH_SKIP_THREADS_AFTER_FORK();
  BlockChecks checks(memory());
  std::atomic<bool> isReached = false;
  std::atomic<bool> isMarked = false;
  auto check = std::make_shared<BlockCheck>();
  check->id = [] {
    return segmentKey(1).bytes;
  };
  check->blocks = 1;
  check->run = [](uint64_t, const BlockProgress&) -> StoreStatus {
    return storeFail(StoreReason::kCorrupt, "wrong");
  };
  check->end = [&](const StoreStatus&) {
    isReached = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    isMarked = true;
  };
  checks.add(check);
  std::thread checker([&] { checks.runAll([] { return false; }); });
  while (!isReached) std::this_thread::yield();
  EXPECT_EQ(inChild([&] { return isMarked ? 0 : 1; }), 0);
  checker.join();
}

TEST_F(BlockChecksTest, WithoutTimeItIsOneBlock) {
  files_ = {{1, {.blocks = 5}}};
  for (int i = 0; i < 5; ++i) endAtOnce({.least = 1, .most = 10});
  EXPECT_EQ(files_[1].read, upTo(5));
  EXPECT_TRUE(files_[1].isRight);
}

TEST_F(BlockChecksTest, AWrongBlockEndsACheckAndIsNeverKnownAsRight) {
  files_ = {{1, {.blocks = 8, .wrong = 5}}, {2, {.blocks = 8}}};
  for (int i = 0; i < 5; ++i) endAtOnce();
  EXPECT_GE(files_[1].ends, 2);
  EXPECT_FALSE(files_[1].isRight);
  EXPECT_TRUE(files_[2].isRight);
  EXPECT_EQ(files_[2].read, upTo(8));
}

TEST_F(BlockChecksTest, BackgroundChecksContinueAndAreContinued) {
  files_ = {{1, {.blocks = 200}}};
  endAtOnce();
  {
    BlockChecks checks(memory());
    addAll(checks);
    // The background check stops after 100 more blocks.
    checks.runAll([this] { return files_[1].read.size() >= 110; });
  }
  EXPECT_EQ(files_[1].read, upTo(110));
  BlockChecks checks(memory());
  addAll(checks);
  checks.runAll([] { return false; });
  EXPECT_TRUE(files_[1].isRight);
  EXPECT_EQ(files_[1].read, upTo(200));
}

TEST_F(BlockChecksTest, WithoutLastingKnowledgeASampleIsChecked) {
  isLasting_ = false;
  files_ = {{1, {.blocks = 20}}, {2, {.blocks = 20}}};
  std::set<std::pair<uint64_t, uint64_t>> seen;
  for (int i = 0; i < 10'000 && seen.size() < 40; ++i) {
    endAtOnce();
    size_t count = 0;
    for (auto& [number, file] : files_) {
      count += file.read.size();
      for (const uint64_t block : file.read) seen.emplace(number, block);
      file.read.clear();
      EXPECT_EQ(file.ends, 0);
    }
    EXPECT_GE(count, 1u);
    EXPECT_LE(count, 4u);
  }
  EXPECT_EQ(seen.size(), 40u);
  EXPECT_TRUE(known_.empty());
}

}  // namespace
}  // namespace hearth::cache
