// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cache/segment/segment.h"

namespace hearth::cpu {

// Prefetches the pages of segments in the background, in the order given, and calls `done` when it
// has finished, on any thread. Segments that another call has claimed are left to that call. Less
// than 1 MiB is prefetched on the calling thread. Where no thread can be started, nothing is
// prefetched, and the pages come in as they are used.
//
// Prefetching begins when no start of the process is in progress any more: it competes with starts
// for the disk and the processors (measured: 115 ms instead of 5 for a signature whose segments
// were being looked for, and 16 ms instead of 8 with all pages in memory). Several threads read
// from the disk: a single one leaves the disk idle between two pieces, which costs half of its
// speed (measured: 0.8 GB/s with one thread, 1.6 to 2.4 with four). If all segments are in the page
// cache, one thread suffices, and prefetching also waits until the caller calls the returned
// function, at the end of its start; if the caller destroys the function uncalled, nothing is
// prefetched.
//
// Where a segment has to come from the disk, `beforeDisk` is called first, on the calling thread:
// reads that are requested later queue behind the segments.
[[nodiscard]] std::function<void()> pageIn(std::vector<cache::SegmentRef> segments,
                                           const std::function<void()>& beforeDisk,
                                           std::function<void()> done);

// Marks the time during which a model is being prepared. Thread-safe. In a child that is forked
// meanwhile the time is over.
class StartInProgress {
 public:
  StartInProgress();
  ~StartInProgress();
  StartInProgress(const StartInProgress&) = delete;
  StartInProgress& operator=(const StartInProgress&) = delete;

 private:
  const uint32_t generation_;
};

}  // namespace hearth::cpu
