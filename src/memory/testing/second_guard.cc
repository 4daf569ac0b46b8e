// SPDX-License-Identifier: Apache-2.0
// A library with a copy of the SIGBUS guard of its own, as every library of Hearth has one.
#include <cstddef>
#include <utility>

#include "memory/sigbus_guard.h"

// Watches this range in place of the one before.
extern "C" __attribute__((visibility("default"))) void watchInSecondCopy(const void* begin,
                                                                         size_t size) {
  static hearth::memory::WatchedPages watched;
  watched = hearth::memory::WatchedPages(begin, size);
}
