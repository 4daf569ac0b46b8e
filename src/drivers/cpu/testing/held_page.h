// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <span>

namespace hearth::cpu {

// A page of output that blocks a thread that writes to it until the test releases it. Only one may
// exist at a time. It installs a SIGSEGV handler, so use it in a forked child.
class HeldPage {
 public:
  HeldPage() {
    data_ = ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    only = this;
    struct sigaction action{};
    action.sa_handler = [](int) {
      only->isReached_.store(true);
      while (!only->isReleased_.load()) ::usleep(100);
      ::mprotect(only->data_, kBytes, PROT_READ | PROT_WRITE);
    };
    ::sigaction(SIGSEGV, &action, nullptr);
  }
  std::span<float> floats(size_t count) const { return {static_cast<float*>(data_), count}; }
  void waitUntilReached() const {
    while (!isReached_.load()) ::usleep(100);
  }
  void release() { isReleased_.store(true); }

 private:
  static constexpr size_t kBytes = 4096;
  static inline HeldPage* only = nullptr;
  void* data_;
  std::atomic<bool> isReached_ = false;
  std::atomic<bool> isReleased_ = false;
};

}  // namespace hearth::cpu
