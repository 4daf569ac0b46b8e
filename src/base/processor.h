// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

namespace hearth::base {

// The processor that runs the calling thread, by Linux's number; negative where that is not known.
int currentProcessor();

// Moves the calling thread, if it runs on `processor`, to another one of those that it may use; it
// may come back later. For threads that wake beside the one that they work for: kernels of virtual
// machines put them there although another processor idles, and leave both there for tens of
// milliseconds. Best effort; nothing happens where there is no other processor.
void leaveProcessor(int processor);

// The same for a thread that the calling one has just made: it waits for the caller's processor
// until that has nothing better to do, so it cannot leave by itself. `thread` is joinable, and does
// not end during the call.
void sendAway(pthread_t thread);

}  // namespace hearth::base
