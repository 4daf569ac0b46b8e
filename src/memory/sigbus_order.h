// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hearth::memory {

// For whoever has called code that may set a handler of SIGBUS, such as a vendor's library: while
// files are watched (memory/sigbus_guard.h), puts the guard's handler before it. Signals that do
// not concern a watched range still get to the other one. Thread-safe; one system call where
// nothing has changed.
void putSigbusGuardFirst();

// While it exists, the ranges that its thread begins to watch (memory/sigbus_guard.h) count as one:
// what SIGBUS means is looked at for the first of them and, where more have come, at the end. One
// inside another does nothing.
class WatchedTogether {
 public:
  WatchedTogether();
  ~WatchedTogether();
  WatchedTogether(const WatchedTogether&) = delete;
  WatchedTogether& operator=(const WatchedTogether&) = delete;

 private:
  const bool isOuter_;
};

}  // namespace hearth::memory
