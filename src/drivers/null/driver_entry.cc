// SPDX-License-Identifier: Apache-2.0
#include "hal/driver_entry.h"

#include "null_device.h"

HEARTH_DRIVER_EXPORT hearth::hal::Device* hearth_driver_create(uint32_t apiVersion, char* message,
                                                               size_t messageSize) {
  if (!hearth::hal::isBuiltFor(apiVersion, message, messageSize)) return nullptr;
  return hearth::drivers::null::createDevice().release();
}
