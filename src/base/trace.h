// SPDX-License-Identifier: Apache-2.0
// Writes events in Chrome's trace format (chrome://tracing, Perfetto) to the file that HEARTH_TRACE
// names. An event is in the file as soon as its span ends, so a killed process loses only the
// closing bracket, which readers of the format do not need. Libraries of one process that each
// contain this code (drivers), and processes that run at the same time, share the file.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace hearth::base {

namespace internal {
// Negative until the first call has read HEARTH_TRACE.
inline std::atomic<int> traceState = -1;
bool startTrace();
uint64_t traceNow();
void writeTraceSpan(const char* category, std::string_view name, uint64_t begin);
}  // namespace internal

inline bool traceEnabled() {
  const int state = internal::traceState.load(std::memory_order_acquire);
  return state < 0 ? internal::startTrace() : state != 0;
}

// A span of time from construction to destruction, both on one thread. Costs one atomic load while
// tracing is off. `category` and `name` must outlive the span. Thread-safe.
class TraceSpan {
 public:
  TraceSpan(const char* category, std::string_view name)
      : category_(category), name_(name), begin_(traceEnabled() ? internal::traceNow() : 0) {}
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;
  ~TraceSpan() {
    if (begin_ != 0) [[unlikely]]
      internal::writeTraceSpan(category_, name_, begin_);
  }

 private:
  const char* category_;
  std::string_view name_;
  uint64_t begin_;  // nanoseconds on the steady clock; 0 = not traced
};

// Sets the value of a quantity from now on; it is drawn as a graph. Does nothing while tracing is
// off.
void traceCounter(const char* category, std::string_view name, int64_t value);

// Opens `path` as HEARTH_TRACE would, in place of the file being written (empty: stops, and writes
// the closing bracket). Returns false when the file cannot be created; tracing is then off. In a
// forked child tracing goes on only if the path contains %p, into a file of the child's own.
bool setTraceFile(std::string_view path);

}  // namespace hearth::base
