// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "hal/device.h"

namespace hearth::runtime {

// Wraps a prepared model so that an execution that fails runs again on `device`, which prepares the
// model at the first failure. Failures that another device would repeat are final: outputs that are
// too small, missed deadlines, and, if `isOwnMemory` says that the devices of `prepared` use the
// memory of this process, a lack of memory.
std::shared_ptr<hal::PreparedModel> withFallback(std::shared_ptr<hal::PreparedModel> prepared,
                                                 std::shared_ptr<const graph::Model> model,
                                                 std::shared_ptr<hal::Device> device,
                                                 hal::PrepareOptions options, bool isOwnMemory);

}  // namespace hearth::runtime
