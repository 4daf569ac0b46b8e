// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "cache/segment.h"

namespace hearth::cpu {

// Brings the pages of segments into this process in the background, in the order given, and calls
// `done` when that is over, on any thread. With little to bring in, all of it happens here. Where
// no thread can be had nothing does, and the pages come as they are used.
//
// What has to come from the disk is read from now on, by several threads: one reads a piece after
// another and leaves the disk waiting in between, which costs half of its speed (measured: 0.8 GB/s
// with one thread, 1.6 to 2.4 with four). What is in the page cache takes one thread, which begins
// when what is returned here was called, for the end of the start, and no other start of the
// process is in progress: starts that share the processors with it take longer (measured: 16 ms
// instead of 8). If that is destroyed instead, nothing more is brought in.
[[nodiscard]] std::function<void()> pageIn(std::vector<cache::SegmentRef> segments,
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
