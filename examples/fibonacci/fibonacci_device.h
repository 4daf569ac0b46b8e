// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "hal/device.h"

namespace example {

// The device `fibonacci`, whose only operation is that of its own extension (extension.h). Never
// null.
std::unique_ptr<hearth::hal::Device> createFibonacciDevice();

}  // namespace example
