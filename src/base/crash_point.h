// SPDX-License-Identifier: Apache-2.0
// Named places where a test kills the process, to prove that the files on disk are then whole.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#ifdef HEARTH_TEST_HOOKS
#include <algorithm>
#include <atomic>
#endif

namespace hearth::base {

// The sorted names of all crash points in this program or library; empty without HEARTH_TEST_HOOKS.
// Thread-safe.
std::vector<std::string> crashPoints();

#ifdef HEARTH_TEST_HOOKS
namespace internal {

// -1 until HEARTH_CRASH_AT has been read, then whether it names a point.
inline std::atomic<int> crashArmed = -1;
bool registerCrashPoint(const char* name);
void passCrashPoint(std::string_view name);

template <size_t size>
struct CrashPointName {
  consteval CrashPointName(const char (&literal)[size]) { std::copy_n(literal, size, text); }
  char text[size];
};

// Static members are initialised while the program loads, so a point is listed whether or not it is
// ever passed.
template <CrashPointName name>
struct CrashPoint {
  inline static const bool registered = registerCrashPoint(name.text);
  static void pass() {
    (void)&registered;
    if (crashArmed.load(std::memory_order_relaxed) != 0) [[unlikely]]
      passCrashPoint(name.text);
  }
};

}  // namespace internal

// Calls `passed` at each pass of a point from now on, on the thread that passes it and with the
// locks that the thread holds. Null: calls nothing.
void watchCrashPoints(void (*passed)(std::string_view name));

// Kills the process with SIGKILL when HEARTH_CRASH_AT is "name" (at the first pass) or "name:N" (at
// the N-th). A name is "noun.moment", for example "segment.after_rename". Otherwise costs one
// atomic load; costs nothing without HEARTH_TEST_HOOKS.
#define HEARTH_CRASH_POINT(name) ::hearth::base::internal::CrashPoint<name>::pass()
#else
#define HEARTH_CRASH_POINT(name) static_cast<void>(0)
#endif

}  // namespace hearth::base
