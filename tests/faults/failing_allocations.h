// SPDX-License-Identifier: Apache-2.0
// The C library's allocation functions, which libstdc++'s operator new calls, too, for a program
// that wants one of them to fail.
#pragma once

#include <cstdint>

namespace hearth::faults {

enum class Threads { kAll, kOthers };  // kOthers: not the one that calls failAllocation()

// From now on the `n`-th allocation on those threads, counted from 1, and the `count` - 1 that
// follow it fail.
void failAllocation(uint64_t n, uint64_t count, Threads threads);
// Lets all succeed again. Whether one has failed.
bool endFailures();
// How many allocations of those that count were asked for since failAllocation().
uint64_t allocationCount();

}  // namespace hearth::faults
