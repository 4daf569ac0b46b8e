// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "graph/model.h"
#include "hal/device.h"

namespace hearth::runtime {

// What a device (or control flow between devices) made of `model`, as the runtime uses it: the one
// place where the answers of devices become those of executions. A request that the device refuses
// and a computation that fails in it are kOpFailed, whatever code the device gives; only codes that
// say more than that pass: deadlines, resources, a device or memory that is gone, outputs that are
// too small. A result whose shapes contradict the model, the request or its status is kOpFailed,
// too. `device` is the name for messages.
std::shared_ptr<hal::PreparedModel> asDeviceModel(std::shared_ptr<hal::PreparedModel> prepared,
                                                  std::shared_ptr<const graph::Model> model,
                                                  std::string device);

}  // namespace hearth::runtime
