// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/vulkan_device.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "drivers/vulkan/testing/test_gpu.h"

namespace hearth::vulkan {
namespace {

// What was measured, and what a runtime keeps, is of one GPU under one driver.
TEST(VulkanDeviceTest, VersionsTellGpusOfTheSameNameApart) {
  const std::shared_ptr<Gpu> gpu = openTestGpu();
  if (gpu == nullptr) return;
  const auto version = [&] {
    OpenGpu open;
    open.gpu = gpu;
    open.pipelines = *Pipelines::create(gpu);
    return deviceOf(validatedOptions(), std::move(open))->version();
  };
  GpuFacts& facts = gpu->factsForTest();
  const std::string first = version();
  EXPECT_NE(first.find(facts.name), std::string::npos);
  EXPECT_NE(first.find(facts.driverVersion), std::string::npos);
  EXPECT_EQ(version(), first);
  facts.identity[0] ^= 1;
  EXPECT_NE(version(), first);
  facts.identity[0] ^= 1;
  EXPECT_EQ(version(), first);
}

}  // namespace
}  // namespace hearth::vulkan
