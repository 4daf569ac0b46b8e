// SPDX-License-Identifier: Apache-2.0
// Functions of Vulkan that fail while a GPU is opened, before it has a table of its own
// (VulkanFaultsTest has those).
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "cache/testing/store_test_util.h"
#include "drivers/vulkan/testing/test_gpu.h"

namespace hearth::vulkan {
namespace {

class OpeningTest : public testing::Test {
 protected:
  void SetUp() override {
    if (openTestGpu() == nullptr) return;
    const auto manifest = folder_.path() / "failing.json";
    std::ofstream(manifest) << R"({"file_format_version": "1.0.0", "ICD": {"api_version": "1.3.0",)"
                            << R"( "library_path": ")" << HEARTH_FAILING_IMPLEMENTATION << "\"}}";
    ::setenv("VK_DRIVER_FILES", manifest.c_str(), 1);
    ::setenv("HEARTH_TEST_VULKAN", "libvulkan_lvp.so", 1);
  }
  void TearDown() override {
    for (const char* const name : {"VK_DRIVER_FILES", "HEARTH_TEST_VULKAN", "HEARTH_TEST_FAILING"})
      ::unsetenv(name);
  }
  static Result<std::shared_ptr<Gpu>> open() { return Gpu::open({.wanted = "llvmpipe"}); }

 private:
  const cache::TempFolder folder_;
};

TEST_F(OpeningTest, AFunctionThatFailsIsASentence) {
  ASSERT_TRUE(open());
  for (const char* const name : {"vkCreateInstance", "vkEnumeratePhysicalDevices",
                                 "vkEnumerateDeviceExtensionProperties", "vkCreateDevice"}) {
    ::setenv("HEARTH_TEST_FAILING", name, 1);
    const auto gpu = open();
    ASSERT_FALSE(gpu) << name;
    EXPECT_TRUE(gpu.error().code() == ErrorCode::kUnavailableDevice ||
                gpu.error().code() == ErrorCode::kResourceExhaustedTransient)
        << gpu.error().toString();
    ::unsetenv("HEARTH_TEST_FAILING");
    EXPECT_TRUE(open()) << name;
  }
}

}  // namespace
}  // namespace hearth::vulkan
