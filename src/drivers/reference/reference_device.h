// SPDX-License-Identifier: Apache-2.0
// The device `nnapi-reference`: the reference kernels of src/ops/reference, one operation after the
// other.
#pragma once

#include <memory>

#include "hal/device.h"

namespace hearth::drivers::reference {

// Supports every operation that has a kernel; keeps no cache and has no memory of its own.
std::shared_ptr<hal::Device> createDevice();

}  // namespace hearth::drivers::reference
