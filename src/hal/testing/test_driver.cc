// SPDX-License-Identifier: Apache-2.0
// The libraries for driver_library_test and device_manager_test. This file is built three times: as
// a driver, as a driver that refuses, and without the symbol.
#include "hal/testing/test_driver.h"

#include <unistd.h>

#include <cstdio>

#include "hal/driver_entry.h"

HEARTH_DRIVER_EXPORT hearth::hal::TestDriverCounts hearth_test_driver_counts;
hearth::hal::TestDriverCounts hearth_test_driver_counts;

namespace hearth::hal {
namespace {

class TestDevice final : public Device {
 public:
  std::string name() const override { return "test-device"; }
  std::string version() const override { return "1"; }
  DeviceType type() const override { return DeviceType::kOther; }
  int64_t featureLevel() const override { return 1000007; }
  Capabilities capabilities() const override { return {}; }
  Result<std::vector<OperationSupport>> supportedOperations(const graph::Model&) override {
    return fail(ErrorCode::kUnsupported, "The device test-device supports nothing.");
  }
  Result<std::shared_ptr<PreparedModel>> prepareModel(std::shared_ptr<const graph::Model>,
                                                      const PrepareOptions&, Cache) override {
    return fail(ErrorCode::kUnsupported, "The device test-device prepares nothing.");
  }
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
  return apiVersion == hearth::hal::kApiVersion ? new hearth::hal::TestDevice() : nullptr;
#endif
}
#endif
