// SPDX-License-Identifier: Apache-2.0
// Lets the n-th allocation of a compilation, run and free fail, for every n, on any thread or on
// the library's own threads. The client must get an error or the right result, nothing may wait for
// ever, and the next use of the model must work as if nothing had failed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "client.h"
#include "failing_allocations.h"

namespace hearth::faults {
namespace {

// Waits until the library's threads stop allocating: their work goes on after calls have returned.
void waitForOthers() {
  uint64_t before;
  do {
    before = allocationCount();
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  } while (allocationCount() != before);
}

class AllocationTest : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("HEARTH_LOG", "off", 1);
    ::setenv("HEARTH_THREADS", "2", 1);
    ::setenv("HEARTH_STORE_MODE", "off", 1);
    writeFile(folder_.path("model.tflite"), modelBytes());
    life_.model = folder_.path("model.tflite");
    expected_ = live(life_).result;
    ASSERT_FALSE(expected_.empty());
  }

  // For every n, calls `prepare` without failures and then `once` with the n-th allocation failing.
  template <typename Prepare, typename Once>
  void failEach(Threads threads, uint64_t count, Prepare prepare, Once once) {
    uint64_t n = 1;
    for (;; ++n) {
      SCOPED_TRACE("allocation " + std::to_string(n));
      // After a crash or a hang, this shows which allocation failed.
      std::fprintf(stderr, "\rallocation %llu  ", static_cast<unsigned long long>(n));
      prepare();
      failAllocation(n, count, threads);
      once();
      if (threads == Threads::kOthers) waitForOthers();
      if (!endFailures()) break;
      if (HasFatalFailure()) return;
    }
    std::fprintf(stderr, "\rall %llu allocations\n", static_cast<unsigned long long>(n));
  }

  // If a kernel could not be allocated, another may compute instead, and rounds differently.
  void expectRight(const std::vector<float>& result) const {
    EXPECT_THAT(result, testing::Pointwise(testing::FloatNear(1e-3f), expected_));
  }

  void check(const Outcome& outcome) const {
    if (outcome.status == HEARTH_OK) {
      expectRight(outcome.result);
    } else {
      EXPECT_EQ(outcome.status, HEARTH_OUT_OF_MEMORY) << outcome.message;
    }
  }

  void failEachOf(const Life& life, Threads threads, uint64_t count = 1) {
    failEach(
        threads, count, [] {},
        [&] {
          const Outcome outcome = live(life);
          const bool hasFailed = endFailures();
          check(outcome);
          if (!hasFailed) return;
          // Once more, without a failure.
          const Outcome again = live(life);
          ASSERT_EQ(again.status, HEARTH_OK) << again.message;
          expectRight(again.result);
        });
  }

  // The same for first starts: `setPlace` is called with a path at which nothing exists yet. After
  // each failure the model is started again without one.
  template <typename SetPlace>
  void failEachColdStart(SetPlace setPlace) {
    const Folder places;
    int number = 0;
    const auto prepare = [&] {
      places.clear();
      setPlace(places.path(std::to_string(++number)));
    };
    failEach(Threads::kAll, 1, prepare, [&] {
      const Outcome outcome = live(life_);
      endFailures();
      check(outcome);
      const Outcome again = live(life_);
      ASSERT_EQ(again.status, HEARTH_OK) << again.message;
      expectRight(again.result);
    });
  }

  Folder folder_;
  Life life_;
  std::vector<float> expected_;
};

TEST_F(AllocationTest, AFailureWithoutAStoreIsAnError) {
  failEachOf(life_, Threads::kAll);
}

TEST_F(AllocationTest, ManyFailuresInARowAreAnError) {
  failEachOf(life_, Threads::kAll, 20);
}

TEST_F(AllocationTest, AFailureOfARunInTheBackgroundIsItsResult) {
  life_.isStarted = true;
  failEachOf(life_, Threads::kAll);
}

TEST_F(AllocationTest, AFailureWithAStoreIsAnErrorOrUncached) {
  life_.cache = HEARTH_CACHE_READ_WRITE;
  failEachColdStart([&](const std::string& path) { life_.store = path; });
}

TEST_F(AllocationTest, AFailureWithABundleIsAnErrorOrUncached) {
  life_.cache = HEARTH_CACHE_READ_WRITE;
  failEachColdStart([&](const std::string& path) { life_.bundle = path; });
}

TEST_F(AllocationTest, AFailureWithACacheFolderIsAnErrorOrUncached) {
  failEachColdStart([&](const std::string& path) {
    std::filesystem::create_directory(path);
    life_.cacheFolder = path;
  });
}

TEST_F(AllocationTest, AFailureOnAThreadOfTheLibraryEndsNothing) {
  const Folder stores;
  life_.cache = HEARTH_CACHE_READ_WRITE;
  life_.isStarted = true;
  int number = 0;
  const auto prepare = [&] {
    stores.clear();
    life_.store = stores.path(std::to_string(++number));
  };
  failEach(Threads::kOthers, 1, prepare, [&] {
    check(live(life_));
    waitForOthers();
    check(live(life_));
  });
}

TEST_F(AllocationTest, AFailureInAWarmStartIsAnErrorOrUncached) {
  const Folder stores;
  life_.cache = HEARTH_CACHE_READ_WRITE;
  life_.store = stores.path("store");
  ASSERT_EQ(live(life_).status, HEARTH_OK);
  failEachOf(life_, Threads::kAll);
}

TEST_F(AllocationTest, AFailureJustInTimeIsAnError) {
  life_.preparation = HEARTH_PREPARE_JUST_IN_TIME;
  failEachOf(life_, Threads::kAll);
}

TEST_F(AllocationTest, AFailureInNnapiIsAnError) {
  const NnapiOutcome expected = liveWithNnapi();
  ASSERT_EQ(expected.code, 0);
  failEach(
      Threads::kAll, 1, [] {},
      [&] {
        const NnapiOutcome outcome = liveWithNnapi();
        const bool hasFailed = endFailures();
        // If the first device had no memory, another may compute instead, and round differently.
        if (outcome.code == 0) {
          EXPECT_THAT(outcome.results,
                      testing::Pointwise(testing::FloatNear(1e-3f), expected.results));
        }
        if (!hasFailed) return;
        const NnapiOutcome again = liveWithNnapi();
        ASSERT_EQ(again.code, 0);
        ASSERT_EQ(again.results, expected.results);
      });
}

}  // namespace
}  // namespace hearth::faults
