// SPDX-License-Identifier: Apache-2.0
#include "hal/driver_entry.h"

#include "drivers/vulkan/vulkan_device.h"

HEARTH_DRIVER_EXPORT hearth::hal::Device* hearth_driver_create(uint32_t apiVersion, char* message,
                                                               size_t messageSize) {
  if (!hearth::hal::isBuiltFor(apiVersion, message, messageSize)) return nullptr;
  auto device = hearth::vulkan::createDevice(hearth::vulkan::optionsOfEnvironment());
  if (device) return device->release();
  std::snprintf(message, messageSize, "%s", device.error().toString().c_str());
  return nullptr;
}
