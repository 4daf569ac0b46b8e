// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

namespace hearth::ipc {

// The threads that work for one client of a host: those that read its messages, and others.
// Thread-safe. The functions that the threads call hold
// what this object is part of, and are destroyed when they do not count any more.
class ClientThreads {
 public:
  // At most `readers` threads read messages. `isUnread`: HostState::isUnread, which outlives this
  // object.
  ClientThreads(unsigned readers, int isUnread) : mostReaders_(readers), isUnread_(isUnread) {}

  // Starts a thread that calls `work`, and counts until that returns; false when none can be had.
  bool start(const char* name, std::function<void()> work);
  // Starts a thread that reads messages, if there may be one more; false when none can be had, and
  // there is none. `read` calls the functions for readers below.
  bool startReader(std::function<void()> read);

  // Whether a thread reads messages, or is at one.
  bool isRead() const;
  // Whether all threads have ended.
  bool isIdle() const;
  bool waitUntilIdle(std::chrono::steady_clock::time_point until);

  // Has the thread that waits for all clients look again for what it waits; false when it cannot be
  // told.
  bool stir() const;

  // A reader has got a message; true when no other one waits for the next.
  bool isLastToWait();
  // A reader waits for a message again.
  void waitsAgain();
  // A reader has waited for long: whether it is to end, and counts no more.
  bool isNotNeeded();
  // A reader that waits ends.
  void readerEnds();

 private:
  const unsigned mostReaders_;
  const int isUnread_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  unsigned threads_ = 0;  // all of this client; guarded by mutex_, as are the next two
  unsigned readers_ = 0;  // of them, those for messages
  unsigned idle_ = 0;     // of these, those that wait for a message

  // Both with mutex_ locked.
  bool startCounted(const char* name, std::function<void()> work);
  void uncountReader();
};

}  // namespace hearth::ipc
