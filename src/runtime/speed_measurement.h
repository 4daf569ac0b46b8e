// SPDX-License-Identifier: Apache-2.0
// Finds out how fast a device is, by small models.
#pragma once

#include <span>

#include "base/result.h"
#include "hal/device.h"
#include "runtime/device_speed.h"

namespace hearth::runtime {

// Measures what `speed` does not have yet: the products of `kinds`, and all else unless `execution`
// is there. Takes some tens of milliseconds, and what the device takes to prepare its first models.
// Errors: those of the device's preparations and executions; `speed` keeps what was measured
// before.
Status measureSpeed(hal::Device& device, std::span<const NumberKind> kinds, unsigned threads,
                    DeviceSpeed* speed);

}  // namespace hearth::runtime
