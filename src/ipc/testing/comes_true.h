// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <thread>

namespace hearth::ipc {

// Waits until `done()` is true, for a minute at most. Returns whether it is.
template <typename Done>
bool comesTrue(Done done) {
  for (int i = 0; i < 6000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace hearth::ipc
