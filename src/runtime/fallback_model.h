// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "hal/device.h"

namespace hearth::runtime {

// What was tried on a device.
enum class Attempt { kPreparation, kExecution };

// Whether another device may succeed where one failed. It cannot mend a bad model or outputs that
// are too small, and has no more time. If `isOwnMemory` says that the devices that failed use the
// memory of this process, it would lack memory as well.
bool isWorthAnotherDevice(const Error& error, Attempt failed, bool isOwnMemory);

// Wraps a prepared model so that an execution that fails runs again on `device`, which prepares the
// model at the first failure. Failures that another device would repeat (isWorthAnotherDevice) are
// final, and so are those of executions with arguments in the memory of a device. While the first
// device is dead again and again, executions go to `device` at once, for up to 2 s until the first
// is tried again.
std::shared_ptr<hal::PreparedModel> withFallback(std::shared_ptr<hal::PreparedModel> prepared,
                                                 std::shared_ptr<const graph::Model> model,
                                                 std::shared_ptr<hal::Device> device,
                                                 hal::PrepareOptions options, bool isOwnMemory);

}  // namespace hearth::runtime
