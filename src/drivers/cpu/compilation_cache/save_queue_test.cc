// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/compilation_cache/save_queue.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>

#include "base/exit_work.h"
#include "base/fork_test_util.h"
#include "cache/testing/store_test_util.h"
#include "drivers/cpu/testing/exiting_process.h"

namespace hearth::cpu {
namespace {

using std::chrono::milliseconds;

class SaveQueueTest : public testing::Test {
 protected:
  // A store whose thread waits until go() is called.
  std::shared_ptr<cache::SegmentStore> heldStore() {
    auto store = storeIn(folder_.path());
    store->afterPublishing([going = go_.get_future().share()] { going.wait(); });
    return store;
  }
  void go() { go_.set_value(); }

  const cache::TempFolder folder_{cache::TempFolder::Place::kMemory};
  std::promise<void> go_;
};

// Whether a process that exits with an open save has completed it by then.
bool isDoneAtExit(const std::filesystem::path& folder, const std::function<void()>& decide) {
  return leavesMarker(folder, [&](const std::filesystem::path& marker) {
    decide();
    SaveQueue::post({1}, storeIn(folder), [marker] {
      std::this_thread::sleep_for(milliseconds(300));
      std::ofstream(marker) << "done";
    });
  });
}

// This test comes first, since exit() in a child checks for leaks and would report those of the
// parent's threads.
TEST_F(SaveQueueTest, AProcessThatExitsSavesUnlessItDeclines) {
  EXPECT_FALSE(isDoneAtExit(folder_.path(), [] { base::setWorkAtExit(false); }));
  EXPECT_TRUE(isDoneAtExit(folder_.path(), [] {}));
}

TEST_F(SaveQueueTest, ASaveFollowsWhatTheStoreIsToWrite) {
  std::atomic<int> runs = 0;
  const auto save = SaveQueue::post({1}, heldStore(), [&] { ++runs; });
  // A wait for another token returns at once.
  SaveQueue::waitFor({2});
  EXPECT_EQ(runs, 0);
  go();
  SaveQueue::waitFor({1});
  EXPECT_EQ(runs, 1);
  save->finish();
  EXPECT_TRUE(SaveQueue::finishAll());
  EXPECT_EQ(runs, 1);
}

TEST_F(SaveQueueTest, ASaveThatThrowsIsOver) {
  const auto save =
      SaveQueue::post({1}, heldStore(), [] { throw std::runtime_error("The disk is on fire."); });
  go();
  save->finish();
  SaveQueue::waitFor({1});
  EXPECT_TRUE(SaveQueue::finishAll());
}

TEST_F(SaveQueueTest, AForkedChildHasNoneOfItsParents) {
  HEARTH_SKIP_THREADS_AFTER_FORK();
  std::atomic<int> runs = 0;
  const auto save = SaveQueue::post({1}, heldStore(), [&] { ++runs; });
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(120);
    save->finish();
    SaveQueue::waitFor({1});
    if (!SaveQueue::finishAll() || runs != 0) ::_exit(1);
    hal::PrepareOptions options;
    options.driverOptions["store"] = (folder_.path() / "other").string();
    SaveQueue::post({1}, openStore(options), [&] { ++runs; })->finish();
    ::_exit(runs == 1 ? 0 : 2);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  go();
  save->finish();
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace hearth::cpu
