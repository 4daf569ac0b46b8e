// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "hal/device.h"

namespace hearth::runtime {

// A prepared model that computes an execution again on `device` when the driver fails it. `device`
// prepares the model at the first failure. What another device would not change is not tried
// again: outputs that are too small, missed deadlines, and, where `isOwnMemory` says that the
// devices of `prepared` use the memory of this process, a lack of it.
std::shared_ptr<hal::PreparedModel> withFallback(std::shared_ptr<hal::PreparedModel> prepared,
                                                 std::shared_ptr<const graph::Model> model,
                                                 std::shared_ptr<hal::Device> device,
                                                 hal::PrepareOptions options, bool isOwnMemory);

}  // namespace hearth::runtime
