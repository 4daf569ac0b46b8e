// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/descriptor.h"
#include "base/result.h"
#include "runtime/event.h"

namespace hearth::runtime {

// Returns an event that completes when poll() reports the descriptor readable: a sync fence or an
// eventfd of another program. The event fails with kOpFailed when the descriptor reports an error.
// One thread, started by the first call, watches all descriptors of the process. kBadData for a
// descriptor that cannot be polled, kIo when no thread can be started or the kernel refuses.
// Thread-safe.
Result<std::shared_ptr<Event>> watchFence(base::Descriptor fence);

}  // namespace hearth::runtime
