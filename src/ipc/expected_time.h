// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>

namespace hearth::ipc {

// How long the next computation of an execution takes, as the last ones tell. For one thread at a
// time.
class ExpectedTime {
 public:
  // So many computations are remembered, and as many have to be known.
  static constexpr size_t kKnown = 8;
  // Of which this many may have taken longer, since something interrupted them.
  static constexpr size_t kInterrupted = 2;
  // How far the others may be apart, in absolute terms and as a part of the shortest.
  static constexpr std::chrono::microseconds kSpread{40};
  static constexpr int kSpreadPart = 10;

  void add(std::chrono::nanoseconds time);

  // The shorter of two usual times, so that most computations end afterwards. None where too few
  // are known, or where they take so different times that nothing can be expected.
  std::optional<std::chrono::nanoseconds> next() const;

 private:
  std::array<std::chrono::nanoseconds, kKnown> times_{};
  size_t count_ = 0;  // that were added
};

}  // namespace hearth::ipc
