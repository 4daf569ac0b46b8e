// SPDX-License-Identifier: Apache-2.0
#include "hal/driver_entry.h"

#include <cstdio>

#include "fibonacci_device.h"

HEARTH_DRIVER_EXPORT hearth::hal::Device* hearth_driver_create(uint32_t apiVersion, char* message,
                                                               size_t messageSize) {
  if (apiVersion != hearth::hal::kApiVersion) {
    std::snprintf(message, messageSize, "It is built for version %u of the driver interface.",
                  hearth::hal::kApiVersion);
    return nullptr;
  }
  return example::createFibonacciDevice().release();
}
