// SPDX-License-Identifier: Apache-2.0
// The devices `vulkan-gpu`, `vulkan-gpu-2` and so on: a GPU each, by compute shaders of Vulkan.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "drivers/vulkan/context/gpu.h"
#include "drivers/vulkan/prepared_model.h"
#include "hal/device.h"

namespace hearth::vulkan {

// Of the first one; the others have their number behind it.
inline constexpr char kVulkanDeviceName[] = "vulkan-gpu";

// What HEARTH_VULKAN_DEVICE says.
GpuOptions optionsOfEnvironment();

// Opens the GPU, and says among how many it was chosen (Gpu::choices()). Errors as Gpu::open().
Result<std::unique_ptr<hal::Device>> createDevice(const GpuOptions& options,
                                                  uint32_t* choices = nullptr);

// The device over a GPU that is open, with all that OpenGpu has; `options` are for opening it again
// when it was lost.
std::unique_ptr<hal::Device> deviceOf(const GpuOptions& options, OpenGpu open);

}  // namespace hearth::vulkan
