// SPDX-License-Identifier: Apache-2.0
// The cases whose operations the Vulkan driver has, on the CPU's implementation of Vulkan under the
// validation layer.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "drivers/vulkan/testing/validated_device.h"
#include "drivers/vulkan/vulkan_device.h"
#include "tools/conformance/conformance.h"
#include "tools/conformance/testing/conformance_files.h"

namespace hearth::conformance {
namespace {

// Cases that passed when an operation was last added.
constexpr size_t kLeastPassed = 4738;

bool isRefused(const CaseResult& result) {
  return result.message.contains("The device does not support operation") ||
         result.message.contains("The GPU driver has no WHILE");
}

TEST(VulkanConformance, EveryCaseOfItsOperationsPasses) {
  const char* data = std::getenv("HEARTH_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "HEARTH_TEST_DATA is not set.";
  RunOptions options;
  options.files = conformanceFiles(data);
  ASSERT_FALSE(options.files.empty());
  // A process compiles each shader that it uses once.
  options.workers.chunkSize = 1000;
  const auto report =
      runConformance({vulkan::kVulkanDeviceName, vulkan::createValidatedDevice}, options, {});
  ASSERT_TRUE(report) << report.error().toString();
  // Only now, as the run has to begin without the threads of a GPU's driver.
  if (const auto device = vulkan::createValidatedDevice();
      !device && device.error().code() == ErrorCode::kUnsupported)
    GTEST_SKIP() << device.error().toString();
  for (const CaseReport& each : report->cases)
    EXPECT_TRUE(each.result.hasPassed || isRefused(each.result))
        << each.name << ": " << each.result.message;
  EXPECT_GE(report->passed, kLeastPassed);
  RecordProperty("passed", std::to_string(report->passed));
}

}  // namespace
}  // namespace hearth::conformance
