// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "cache/segment/segment.h"

namespace hearth::cpu {

// Brings the pages of segments into this process in the background, in the order given, and calls
// `done` when that is over, on any thread; those that another call has taken on are left to it.
// With little to bring in, all of it happens here. Where no thread can be had nothing does, and the
// pages come as they are used.
//
// It begins when no start of the process is in progress any more: starts that share the disk or the
// processors with it take longer (measured: 115 ms instead of 5 for a signature whose segments were
// being looked for, and 16 ms instead of 8 with all pages in memory). What has to come from the
// disk is read by several threads: one reads a piece after another and leaves the disk waiting in
// between, which costs half of its speed (measured: 0.8 GB/s with one thread, 1.6 to 2.4 with
// four). What is in the page cache takes one thread, which also waits until what is returned here
// was called, for the end of the start; if that is destroyed instead, nothing more is brought in.
//
// `beforeDisk` is called first where something has to come from the disk: what is asked for later
// waits for the segments.
[[nodiscard]] std::function<void()> pageIn(std::vector<cache::SegmentRef> segments,
                                           const std::function<void()>& beforeDisk,
                                           std::function<void()> done);

// Lives as long as a model is being prepared. Thread-safe.
class StartInProgress {
 public:
  StartInProgress();
  ~StartInProgress();
  StartInProgress(const StartInProgress&) = delete;
  StartInProgress& operator=(const StartInProgress&) = delete;
};

}  // namespace hearth::cpu
