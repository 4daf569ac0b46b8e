// SPDX-License-Identifier: Apache-2.0
// Files of the store are truncated while several models of a process use them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <thread>
#include <vector>

#include "cache/open_store.h"
#include "drivers/cpu/testing/held_page.h"
#include "drivers/cpu/testing/weight_session_test_util.h"
#include "memory/sigbus_guard.h"

namespace hearth::cpu {
namespace {

namespace fs = std::filesystem;

class LostPagesOfModelsTest : public WeightSessionTest {
 protected:
  void SetUp() override {
    WeightSessionTest::SetUp();
    save(model_);
    cache::StoreOptions off = options();
    off.mode = cache::StoreMode::kOff;
    expected_ = start(model_, off).output;
  }

  cache::StoreOptions strict() const {
    cache::StoreOptions result = options();
    result.mode = cache::StoreMode::kStrict;
    return result;
  }

  static std::shared_ptr<cache::SegmentStore> storeOf(cache::StoreOptions options) {
    options.fingerprint = storeFingerprint();
    return cache::openSegmentStore(options);
  }

  void cutSegments() const {
    for (const fs::path& file : segmentFiles()) {
      fs::permissions(file, fs::perms(0600));
      fs::resize_file(file, 0);
    }
  }

  TestModel model_{70};
  std::vector<float> expected_;
};

// Pages that another user of the mapping has lost read as zeros and raise no more signals.
TEST_F(LostPagesOfModelsTest, AreNotGivenToANewModel) {
  ASSERT_EQ(start(model_, strict()).output, expected_);
  const Start first = start(model_, strict());
  ASSERT_EQ(first.report.state, State::kWarm);
  const auto store = storeOf(strict());
  store->settle();
  const std::vector<fs::path> files = segmentFiles();
  ASSERT_FALSE(files.empty());
  std::vector<cache::SegmentRef> mapped;
  for (const fs::path& file : files) {
    const auto key =
        cache::SegmentKey::fromHex(file.parent_path().filename().string() + file.stem().string());
    ASSERT_TRUE(key) << file;
    mapped.push_back(store->find(*key).segment);
    ASSERT_NE(mapped.back(), nullptr);
  }
  cutSegments();
  for (const cache::SegmentRef& segment : mapped) {
    for (size_t i = 0; i < segment->size(); i += 4096) EXPECT_EQ(segment->data()[i], 0);
    EXPECT_TRUE(segment->isCorrupt());
  }
  EXPECT_EQ(start(model_, strict()).output, expected_);
  EXPECT_EQ(runAgain(first), expected_);
}

// Models share the packed weights of a process. One repairs them while the other computes with
// zeros.
TEST_F(LostPagesOfModelsTest, AreNoticedByAModelWhoseWeightsAnotherRepairs) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(120);
    const Start one = start(model_, options());
    storeOf(options())->settle();
    cache::StoreOptions elsewhere = options();
    elsewhere.path += "2";
    const Start other = start(model_, elsewhere);
    EXPECT_GT(other.report.sharedBytes, 0u);
    cutSegments();
    const uint64_t losses = memory::lossCount();
    HeldPage page;
    std::vector<float> input = pictures(other.batch);
    const std::span<float> output = page.floats(kClasses);
    std::thread execution([&] { EXPECT_TRUE(tryOnce(*other.prepared, input, output)); });
    page.waitUntilReached();
    EXPECT_GT(memory::lossCount(), losses);
    EXPECT_EQ(runAgain(one), expected_);
    page.release();
    execution.join();
    EXPECT_TRUE(std::ranges::equal(output, expected_));
    ::_exit(HasFailure() ? 1 : 0);
  }
  EXPECT_EQ(cache::waitForChild(child), 0);
}

}  // namespace
}  // namespace hearth::cpu
