// SPDX-License-Identifier: Apache-2.0
#include "base/wall_clock.h"

namespace hearth::base {
namespace {

int64_t nowOf(clockid_t clock) {
  timespec time;
  ::clock_gettime(clock, &time);
  return toNanoseconds(time);
}

}  // namespace

int64_t wallClock() {
  return nowOf(CLOCK_REALTIME);
}

int64_t fileClock() {
  return nowOf(CLOCK_REALTIME_COARSE);
}

}  // namespace hearth::base
