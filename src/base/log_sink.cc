// SPDX-License-Identifier: Apache-2.0
#include "base/log_sink.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/fork_gate.h"
#include "base/immortal.h"
#include "base/thread_local.h"

namespace hearth::base {
namespace {

// Replaced and called under the mutex. A single pointer, so that a forked child finds it whole.
constinit std::atomic<const LogSink*> current = nullptr;
HEARTH_THREAD_LOCAL constinit bool isInside = false;

std::mutex& sinkMutex() {
  static constinit Immortal<std::mutex> only;
  return only.get([] {
    // A child has only the thread that forked, which may be inside the sink.
    ForkGate::atFork({.afterInChild = [] {
      if (!isInside) std::construct_at(&sinkMutex());
    }});
    return std::mutex();
  });
}

class Inside {
 public:
  Inside() { isInside = true; }
  ~Inside() { isInside = false; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

}  // namespace

void setLogSink(LogSink sink) {
  auto made = sink != nullptr ? std::make_unique<const LogSink>(std::move(sink)) : nullptr;
  std::unique_lock<std::mutex> lock;
  if (!isInside) lock = std::unique_lock(sinkMutex());
  made.reset(current.exchange(made.release()));
}

bool callLogSink(LogLevel level, std::string_view message) {
  if (current.load(std::memory_order_acquire) == nullptr || isInside) return false;
  const std::string text(message);
  const std::lock_guard lock(sinkMutex());
  const LogSink* const found = current.load(std::memory_order_relaxed);
  if (found == nullptr) return false;
  const LogSink sink = *found;  // the call may replace it
  const Inside inside;
  sink(level, text.c_str());
  return true;
}

}  // namespace hearth::base
