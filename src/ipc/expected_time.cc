// SPDX-License-Identifier: Apache-2.0
#include "ipc/expected_time.h"

#include <algorithm>

namespace hearth::ipc {

void ExpectedTime::add(std::chrono::nanoseconds time) {
  times_[count_++ % kKnown] = time;
}

std::optional<std::chrono::nanoseconds> ExpectedTime::next() const {
  if (count_ < kKnown) return {};
  auto sorted = times_;
  std::ranges::sort(sorted);
  const auto shortest = sorted.front();
  const auto longest = sorted[kKnown - 1 - kInterrupted];
  if (longest - shortest > std::max<std::chrono::nanoseconds>(kSpread, shortest / kSpreadPart))
    return {};
  return sorted[kKnown / 4];
}

}  // namespace hearth::ipc
