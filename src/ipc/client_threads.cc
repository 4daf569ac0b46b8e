// SPDX-License-Identifier: Apache-2.0
#include "ipc/client_threads.h"

#include <unistd.h>

#include <cstdint>
#include <thread>
#include <utility>

#include "base/helper_thread.h"

namespace hearth::ipc {

bool ClientThreads::startCounted(const char* name, std::function<void()> work) {
  std::thread thread = base::startHelperThread(name, std::move(work), base::Processors::kOfProcess);
  if (!thread.joinable()) return false;
  thread.detach();
  ++threads_;
  return true;
}

bool ClientThreads::start(const char* name, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  return startCounted(name, [this, work = std::move(work)] {
    work();
    const std::lock_guard ending(mutex_);
    --threads_;
    ended_.notify_all();
  });
}

bool ClientThreads::startReader(std::function<void()> read) {
  const std::lock_guard lock(mutex_);
  if (readers_ >= mostReaders_) return true;
  if (!startCounted("hearth-host", std::move(read))) return readers_ != 0;
  ++readers_;
  ++idle_;
  return true;
}

bool ClientThreads::isRead() const {
  const std::lock_guard lock(mutex_);
  return readers_ != 0;
}

bool ClientThreads::isIdle() const {
  const std::lock_guard lock(mutex_);
  return threads_ == 0;
}

bool ClientThreads::waitUntilIdle(std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  return ended_.wait_until(lock, until, [&] { return threads_ == 0; });
}

bool ClientThreads::stir() const {
  const uint64_t one = 1;
  return ::write(isUnread_, &one, sizeof one) == sizeof one;
}

bool ClientThreads::isLastToWait() {
  const std::lock_guard lock(mutex_);
  return --idle_ == 0;
}

void ClientThreads::waitsAgain() {
  const std::lock_guard lock(mutex_);
  ++idle_;
}

bool ClientThreads::isNotNeeded() {
  const std::lock_guard lock(mutex_);
  const bool isLast = readers_ == 1;
  // Somebody has to read on while others work.
  if (idle_ == 1 && !isLast) return false;
  if (isLast && !stir()) return false;
  uncountReader();
  return true;
}

void ClientThreads::readerEnds() {
  const std::lock_guard lock(mutex_);
  uncountReader();
}

void ClientThreads::uncountReader() {
  --idle_;
  --readers_;
  --threads_;
  ended_.notify_all();
}

}  // namespace hearth::ipc
