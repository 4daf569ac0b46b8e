// SPDX-License-Identifier: Apache-2.0
// Mapped files that somebody else may truncate while they are read. The kernel then sends SIGBUS,
// which ends the process; for memory that is watched here zeros are read instead, and the loss is
// told, so that the reader can notice before anybody sees its result.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth::memory {

// Watches a range of addresses as long as it lives. Move-only. The first one of the process
// installs a handler of SIGBUS, which passes on what concerns other addresses to the handler before
// it; an application that installs its own later should do the same. Past some thousands of ranges
// nothing is watched.
class WatchedPages {
 public:
  WatchedPages() = default;
  WatchedPages(const void* begin, size_t size);
  WatchedPages(WatchedPages&& other) noexcept;
  WatchedPages& operator=(WatchedPages&& other) noexcept;
  ~WatchedPages();

  // Whether a page of the range was lost since then or since forgetLosses().
  bool hasLosses() const;
  // For whoever has put right bytes in place of the lost ones.
  void forgetLosses();

 private:
  static constexpr size_t kNone = SIZE_MAX;
  size_t slot_ = kNone;
};

// How many times pages were lost in this process so far. Thread-safe, and cheap enough to be asked
// after each inference.
uint64_t lossCount();

}  // namespace hearth::memory
