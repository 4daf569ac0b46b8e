// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "drivers/vulkan/context/gpu.h"
#include "drivers/vulkan/testing/validated_device.h"

namespace hearth::vulkan {

// Opens the GPU of a test. Null where that implementation of Vulkan, or its validation layer, is
// not installed, which skips the test, and after any other error, which fails it.
std::shared_ptr<Gpu> openTestGpu(const GpuOptions& options = validatedOptions());

}  // namespace hearth::vulkan
