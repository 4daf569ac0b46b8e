// SPDX-License-Identifier: Apache-2.0
// Replaces the C library's allocation functions, which libstdc++'s operator new calls, too, in a
// program that wants one of them to fail.
#pragma once

#include <cstdint>

namespace hearth::faults {

enum class Threads { kAll, kOthers };  // kOthers: not the one that calls failAllocation()

// The `n`-th allocation on those threads, counted from 1, and the `count` - 1 allocations after it
// will fail.
void failAllocation(uint64_t n, uint64_t count, Threads threads);
// Lets all allocations succeed again. Returns whether one has failed.
bool endFailures();
// Number of allocations on those threads since failAllocation().
uint64_t allocationCount();

}  // namespace hearth::faults
