// SPDX-License-Identifier: Apache-2.0
// The device `vulkan-gpu`: one GPU, by compute shaders of Vulkan.
#pragma once

#include <memory>

#include "base/result.h"
#include "drivers/vulkan/context/gpu.h"
#include "drivers/vulkan/prepared_model.h"
#include "hal/device.h"

namespace hearth::vulkan {

inline constexpr char kVulkanDeviceName[] = "vulkan-gpu";

// What HEARTH_VULKAN_DEVICE says.
GpuOptions optionsOfEnvironment();

// Opens the GPU. Errors as Gpu::open().
Result<std::unique_ptr<hal::Device>> createDevice(const GpuOptions& options);

// The device over a GPU that is open, with all that OpenGpu has; `options` are for opening it again
// when it was lost.
std::unique_ptr<hal::Device> deviceOf(const GpuOptions& options, OpenGpu open);

}  // namespace hearth::vulkan
