// SPDX-License-Identifier: Apache-2.0
// The shared memory of a mailbox: one execution slot that a client and a host have in common.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/descriptor.h"
#include "base/result.h"

namespace hearth::ipc {

// What a request or an answer says besides its number; both ends agree on the meaning. Whoever
// reads them checks them as it does any bytes of a stranger.
using MailboxWords = std::array<uint64_t, 4>;

// What one end writes and the other one reads, at any moment and without trust: every word is
// loaded once into a local copy. The bytes are as they are here in every build.
struct MailboxSide {
  std::atomic<uint32_t> sequence = 0;    // of the last request or answer; the other end's futex
  std::atomic<uint32_t> isSleeping = 0;  // not 0: wants to be woken
  std::atomic<uint32_t> processor = 0;   // 1 + the processor that it ran on last; 0: not known
  std::atomic<uint32_t> hasLeft = 0;     // not 0: is gone, writes nothing any more
  std::array<std::atomic<uint64_t>, 4> words{};
  std::atomic<uint32_t> received = 0;   // of a host: the last request that it has taken
  std::atomic<uint32_t> announced = 0;  // the number of a request that is answered soon
  // When it rang last, in nanoseconds of CLOCK_MONOTONIC; 0: not told. The first builds lack it.
  std::atomic<uint64_t> rungAt = 0;
};
static_assert(sizeof(MailboxSide) == 64);
static_assert(std::atomic<uint32_t>::is_always_lock_free);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// A mapping of the page. Move-only; the sides may be used on any thread.
class MailboxPage {
 public:
  static constexpr size_t kSize = 4096;

  MailboxPage() = default;
  MailboxPage(MailboxPage&& other) noexcept;
  MailboxPage& operator=(MailboxPage&& other) noexcept;
  ~MailboxPage();

  // A new page, in memory that can be neither shortened nor lengthened. Errors: kIo, kOutOfMemory.
  static Result<MailboxPage> create();

  // The page that another process has made. Takes nothing but memory of a page's size that cannot
  // be shortened, since the loss of a mapped page ends a process. Errors: kBadData, kIo,
  // kOutOfMemory.
  static Result<MailboxPage> open(base::Descriptor memory);

  // The memory, for the other process.
  int fd() const { return memory_.get(); }

  MailboxSide& client() const { return layout_->client; }
  MailboxSide& server() const { return layout_->server; }
  // All of it, for tests that write what no peer of good will writes.
  void* data() const { return layout_; }

 private:
  // Two cache lines apart, since processors fetch lines in pairs.
  struct Layout {
    alignas(128) MailboxSide client;
    alignas(128) MailboxSide server;
  };
  static_assert(sizeof(Layout) <= kSize);

  MailboxPage(base::Descriptor memory, Layout* layout);

  base::Descriptor memory_;
  Layout* layout_ = nullptr;
};

}  // namespace hearth::ipc
