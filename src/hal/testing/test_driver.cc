// SPDX-License-Identifier: Apache-2.0
// The libraries for driver_library_test and device_manager_test. This file is built three times: as
// a driver, as a driver that refuses, and without the symbol.
#include "hal/testing/test_driver.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "hal/driver_entry.h"
#include "hal/testing/stub_devices.h"

HEARTH_DRIVER_EXPORT hearth::hal::TestDriverCounts hearth_test_driver_counts;
hearth::hal::TestDriverCounts hearth_test_driver_counts;

namespace hearth::hal {
namespace {

class TestDevice final : public StubDevice {
 public:
  using StubDevice::StubDevice;
  void warmUp() override {
    hearth_test_driver_counts.warmingThread = ::gettid();
    ++hearth_test_driver_counts.warmUps;
  }
};

}  // namespace
}  // namespace hearth::hal

#ifndef HEARTH_TEST_DRIVER_WITHOUT_SYMBOL
HEARTH_DRIVER_EXPORT hearth::hal::Device* hearth_driver_create(uint32_t apiVersion, char* message,
                                                               size_t messageSize) {
#ifdef HEARTH_TEST_DRIVER_REFUSES
  std::snprintf(message, messageSize, "There is no such chip, interface %u.", apiVersion);
  return nullptr;
#else
  (void)message, (void)messageSize;
  return apiVersion == hearth::hal::kApiVersion ? new hearth::hal::TestDevice("test-device")
                                                : nullptr;
#endif
}

// Of three devices.
HEARTH_DRIVER_EXPORT hearth::hal::Device* hearth_driver_create_numbered(uint32_t apiVersion,
                                                                        uint32_t number,
                                                                        char* message,
                                                                        size_t messageSize) {
  if (apiVersion == hearth::hal::kApiVersion && number <= 3)
    return new hearth::hal::TestDevice("test-device-" + std::to_string(number));
  std::snprintf(message, messageSize, "There are 3 chips, interface %u.", apiVersion);
  return nullptr;
}

HEARTH_DRIVER_EXPORT uint32_t hearth_driver_count() {
  return 3;
}
#endif
