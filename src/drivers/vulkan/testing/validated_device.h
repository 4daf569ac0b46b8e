// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "drivers/vulkan/context/gpu.h"
#include "hal/device.h"

namespace hearth::vulkan {

// The options of a test: the CPU's implementation of Vulkan, watched by the validation layer, with
// its checks of missing barriers. A message of the layer ends the process, so that no test can miss
// it.
GpuOptions validatedOptions();

// The device with these options. kUnsupported, which skips a test, where that implementation or the
// layer is not installed.
Result<std::shared_ptr<hal::Device>> createValidatedDevice();

}  // namespace hearth::vulkan
