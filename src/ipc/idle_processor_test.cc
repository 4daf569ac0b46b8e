// SPDX-License-Identifier: Apache-2.0
#include "ipc/idle_processor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace hearth::ipc {
namespace {

TEST(IdleProcessorTest, TheKernelsTextTellsHowManyThreadsCanRun) {
  EXPECT_EQ(runnableThreads("0.20 0.18 0.12 1/80 11206\n"), 1u);
  EXPECT_EQ(runnableThreads("26.56 27.47 27.09 29/336 19406\n"), 29u);
  for (const char* const other :
       {"", "0.20", "0.20 0.18 0.12", "0.20 0.18 0.12 ", "a b c d/e", "0.20 0.18 0.12 1 80",
        "0.20 0.18 0.12 1x/80", "1 2 3 /80", "1 2 3 99999999999/80"})
    EXPECT_FALSE(runnableThreads(other)) << other;
}

TEST(IdleProcessorTest, NoneIsIdleWhereMoreThreadsWantToRun) {
  const long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
  std::atomic<bool> isOver = false;
  std::vector<std::thread> threads;
  for (long i = 0; i <= processors; ++i)
    threads.emplace_back([&] {
      while (!isOver) continue;
    });
  // Until all have begun.
  bool isIdle = true;
  for (int i = 0; i < 60'000 && isIdle; ++i) {
    isIdle = hasIdleProcessor();
    if (isIdle) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  isOver = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(isIdle);
}

}  // namespace
}  // namespace hearth::ipc
