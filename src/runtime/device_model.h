// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "graph/model.h"
#include "hal/device.h"

namespace hearth::runtime {

// Wraps the prepared model of a device (or of control flow between devices): the one place that
// translates answers of devices to those of executions. A request that the device refuses and a
// computation that fails are kOpFailed, whatever code the device returns. Only codes that say more
// pass: deadlines, resources, a device or memory that is gone, outputs that are too small. A result
// whose shapes contradict the model, the request or its status is kOpFailed, too. `device` is the
// name for messages.
std::shared_ptr<hal::PreparedModel> asDeviceModel(std::shared_ptr<hal::PreparedModel> prepared,
                                                  std::shared_ptr<const graph::Model> model,
                                                  std::string device);

}  // namespace hearth::runtime
