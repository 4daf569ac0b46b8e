// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/descriptor.h"
#include "base/result.h"
#include "runtime/event.h"

namespace hearth::runtime {

// An event that completes when poll() would report the descriptor readable: a sync fence or an
// eventfd of somebody else. It fails with kOpFailed when the descriptor reports an error. One
// thread watches all descriptors of the process; it starts at the first call. kBadData for a
// descriptor that cannot be polled, kIo when there is no thread or no room for it.
Result<std::shared_ptr<Event>> watchFence(base::Descriptor fence);

}  // namespace hearth::runtime
