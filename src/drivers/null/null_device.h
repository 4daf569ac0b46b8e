// SPDX-License-Identifier: Apache-2.0
// A driver that does nothing, as a skeleton to copy: see README.md.
#pragma once

#include <memory>

#include "hal/device.h"

namespace hearth::drivers::null {

// The device `null`. It refuses every operation.
std::unique_ptr<hal::Device> createDevice();

}  // namespace hearth::drivers::null
