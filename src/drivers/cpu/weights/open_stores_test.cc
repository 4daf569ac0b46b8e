// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/open_stores.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "base/exit_work.h"
#include "drivers/cpu/testing/exiting_process.h"

namespace hearth::cpu {
namespace {

using std::chrono::milliseconds;

std::atomic<bool> isFlushOver = false;

// Forks a process that exits while its store runs a task. The task lasts until the library's work
// at exit is over, or for `patience`. Returns whether the task ended by itself before that.
bool isDoneAtExit(milliseconds patience, const std::function<void()>& decide) {
  const cache::TempFolder folder(cache::TempFolder::Place::kMemory);
  return leavesMarker(folder.path(), [&](const std::filesystem::path& marker) {
    // Registered before the library's, so called after it.
    std::atexit([] { isFlushOver = true; });
    decide();
    storeIn(folder.path())->afterPublishing([marker, patience] {
      const auto end = std::chrono::steady_clock::now() + patience;
      while (!isFlushOver && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(milliseconds(1));
      if (!isFlushOver) std::ofstream(marker) << "done";
    });
  });
}

TEST(OpenStoresTest, AProcessThatExitsFinishesItsStoresWork) {
  EXPECT_TRUE(isDoneAtExit(milliseconds(200), [] {}));
}

// The task would take longer than the process lives.
TEST(OpenStoresTest, AProgramMayDeclineWorkAtExit) {
  EXPECT_FALSE(isDoneAtExit(milliseconds(8000), [] { base::setWorkAtExit(false); }));
  EXPECT_FALSE(isDoneAtExit(milliseconds(8000), [] { ::setenv("HEARTH_AT_EXIT", "leave", 1); }));
  EXPECT_TRUE(isDoneAtExit(milliseconds(200), [] {
    ::setenv("HEARTH_AT_EXIT", "leave", 1);
    base::setWorkAtExit(true);
  }));
}

TEST(OpenStoresTest, FlushingWaitsForWhatIsQueued) {
  const cache::TempFolder folder(cache::TempFolder::Place::kMemory);
  const auto store = storeIn(folder.path());
  std::atomic<bool> isDone = false;
  store->afterPublishing([&] {
    std::this_thread::sleep_for(milliseconds(50));
    isDone = true;
  });
  flushStores();
  EXPECT_TRUE(isDone);
}

}  // namespace
}  // namespace hearth::cpu
