// SPDX-License-Identifier: Apache-2.0
// Mapped files that somebody else may truncate while they are read. The kernel then sends SIGBUS,
// which ends the process; for memory that is watched here zeros are read instead, and the loss is
// told, so that the reader can notice before anybody sees its result.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth::memory {

// Watches a range of addresses as long as it lives. Move-only. Past some thousands of ranges
// nothing is watched.
//
// While there are such ranges of files, SIGBUS has a handler of this file. What does not concern a
// range goes on to what the signal meant before, with its mask and flags: a handler is called,
// SIG_DFL ends the process, SIG_IGN ignores what was sent by kill(). When the last range goes that
// is put back. A program that sets a handler meanwhile has it called first, until the next range is
// watched: then this file's comes first again, whether that handler passes on what it does not know
// or not.
class WatchedPages {
 public:
  // Memory of the process needs no handler as long as no file is laid over it.
  enum class Of { kFile, kMemory };

  WatchedPages() = default;
  WatchedPages(const void* begin, size_t size, Of of = Of::kFile);
  WatchedPages(WatchedPages&& other) noexcept;
  WatchedPages& operator=(WatchedPages&& other) noexcept;
  ~WatchedPages();

  // Before a file is laid over memory of the process. Thread-safe.
  void becomeFile();

  // Whether a page of the range was lost since then or since forgetLosses().
  bool hasLosses() const;
  // For whoever has put right bytes in place of the lost ones.
  void forgetLosses();

 private:
  static constexpr size_t kNone = SIZE_MAX;
  size_t slot_ = kNone;
};

// Whether a page was lost that is watched and has bytes of this range. Thread-safe; looks through
// all that is watched.
bool areLost(const void* begin, size_t size);

// How many times pages were lost in this process so far. Thread-safe, and cheap enough to be asked
// after each inference.
uint64_t lossCount();

}  // namespace hearth::memory
