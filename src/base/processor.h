// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

namespace hearth::base {

// Linux's number of the processor that runs the calling thread; negative when it is not known.
int currentProcessor();

// Moves the calling thread, if it runs on `processor`, to another of the processors that it may
// use; it may come back later. For a thread that wakes beside the one that it works for: kernels of
// virtual machines put it there although another processor is idle, and leave both there for tens
// of milliseconds. Best effort; does nothing when there is no other processor.
void leaveProcessor(int processor);

// The same for a thread that the caller has just made. Such a thread waits for the caller's
// processor until that is free, so it cannot leave by itself. `thread` is joinable and does not end
// during the call.
void sendAway(pthread_t thread);

}  // namespace hearth::base
