// SPDX-License-Identifier: Apache-2.0
// Mapped files that somebody may truncate while they are read. The kernel then sends SIGBUS, which
// ends the process. Watched memory reads as zeros instead, and the loss is recorded, so that the
// reader can notice it before anybody sees its result.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth::memory {

// Watches a range of addresses while it exists. Move-only. Beyond 8192 ranges nothing more is
// watched.
//
// While a range of a file is watched, SIGBUS has a handler of this file. A signal that does not
// concern a range is passed on to what SIGBUS meant before, with its mask and flags: a handler is
// called, SIG_DFL ends the process, SIG_IGN ignores a signal sent by kill(). When the last range
// goes, the former action is restored. A handler that the program sets meanwhile is called first
// until the next range is watched; from then on this file's handler comes first again, whether or
// not the other passes on signals that it does not know.
class WatchedPages {
 public:
  // Private memory needs no handler until a file is mapped over it.
  enum class Of { kFile, kMemory };

  WatchedPages() = default;
  WatchedPages(const void* begin, size_t size, Of of = Of::kFile);
  WatchedPages(WatchedPages&& other) noexcept;
  WatchedPages& operator=(WatchedPages&& other) noexcept;
  ~WatchedPages();

  // To be called before a file is mapped over the memory. Thread-safe.
  void becomeFile();

  // Whether a page of the range was lost since it is watched, or since forgetLosses(). Waits for
  // running handlers, so that whoever has read zeros in place of lost bytes gets true.
  bool hasLosses() const;
  // To be called when the right bytes have replaced the lost ones.
  void forgetLosses();

 private:
  static constexpr size_t kNone = SIZE_MAX;
  size_t slot_ = kNone;
};

// Whether a watched range that overlaps this one has lost a page. Searches all watched ranges.
// Thread-safe.
bool areLost(const void* begin, size_t size);

// How many times this process has lost pages. Whoever has read zeros in place of lost bytes finds a
// higher count afterwards. Thread-safe; cheap enough to be called after each inference.
uint64_t lossCount();

}  // namespace hearth::memory
