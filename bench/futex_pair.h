// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>

namespace hearth::bench {

// A word for each direction in shared memory, and no spinning: what a process needs at least to ask
// another one. Not movable.
class FutexPair {
 public:
  FutexPair() {
    void* const memory =
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("mmap");
    words_ = static_cast<std::atomic<uint32_t>*>(memory);
  }
  // Answers for ever; in the other process.
  void serve() {
    for (uint32_t number = 0;; ++number) {
      waitWhile(words_[0], number);
      ring(words_[32], number + 1);
    }
  }
  void call() {
    ring(words_[0], number_ + 1);
    waitWhile(words_[32], number_);
    ++number_;
  }

 private:
  static long futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
    return ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, nullptr,
                     nullptr, 0);
  }
  static void waitWhile(std::atomic<uint32_t>& word, uint32_t value) {
    while (word.load() == value) futex(word, FUTEX_WAIT, value);
  }
  static void ring(std::atomic<uint32_t>& word, uint32_t value) {
    word.store(value);
    futex(word, FUTEX_WAKE, 1);
  }

  std::atomic<uint32_t>* words_ = nullptr;
  uint32_t number_ = 0;
};

}  // namespace hearth::bench
