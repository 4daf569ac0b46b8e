// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "cache/testing/store_test_util.h"

namespace hearth::cache {

// A T in memory that a test shares with the processes that it forks afterwards.
template <typename T>
class SharedWithChildren {
 public:
  SharedWithChildren() {
    void* const page =
        ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) std::abort();
    shared_ = new (page) T{};
  }
  ~SharedWithChildren() { ::munmap(shared_, sizeof(T)); }
  SharedWithChildren(const SharedWithChildren&) = delete;
  SharedWithChildren& operator=(const SharedWithChildren&) = delete;
  T* operator->() const { return shared_; }
  T& operator*() const { return *shared_; }

 private:
  T* shared_;
};

// Waits until a counter that is shared with other processes or threads is not less than `count`.
inline void waitUntil(const std::atomic<int>& counter, int count) {
  while (counter.load() < count) ::usleep(200);
}

// Waits until as many as `count` have called this with the same counter, which is 0 at first.
inline void waitForOthers(std::atomic<int>& arrived, int count) {
  arrived.fetch_add(1);
  waitUntil(arrived, count);
}

// Runs `work` in as many forked children at once, and waits until each has exited with 0.
template <typename Work>
void inProcesses(int count, Work work) {
  const SharedWithChildren<std::atomic<int>> ready;
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i)
    children.push_back(startChild([&] {
      waitForOthers(*ready, count);
      return work();
    }));
  for (const pid_t child : children) EXPECT_EQ(waitForChild(child), 0);
}

}  // namespace hearth::cache
