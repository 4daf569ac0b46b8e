// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/context/gpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "drivers/vulkan/context/buffer.h"
#include "drivers/vulkan/context/commands.h"
#include "drivers/vulkan/context/pipelines.h"
#include "drivers/vulkan/shaders/shaders.h"
#include "drivers/vulkan/testing/test_gpu.h"

namespace hearth::vulkan {
namespace {

class GpuTest : public testing::Test {
 protected:
  void SetUp() override { gpu_ = openTestGpu(); }

  VolkDeviceTable& functions() { return gpu_->functionsForTest(); }

  std::shared_ptr<Gpu> gpu_;
};

TEST_F(GpuTest, AnImplementationOnTheCpuIsOpenedOnlyByItsName) {
  const auto unnamed = Gpu::open({});
  if (unnamed)
    EXPECT_NE((*unnamed)->facts().type, VK_PHYSICAL_DEVICE_TYPE_CPU);
  else
    EXPECT_EQ(unnamed.error().code(), ErrorCode::kUnavailableDevice);
}

TEST_F(GpuTest, AnUnknownNameIsRefusedWithThoseThatExist) {
  const auto gpu = Gpu::open({.wanted = "no such device"});
  ASSERT_FALSE(gpu);
  EXPECT_EQ(gpu.error().code(), ErrorCode::kUnavailableDevice);
  EXPECT_NE(gpu.error().message().find(gpu_->facts().name), std::string::npos);
}

TEST_F(GpuTest, ANumberThatIsTooHighIsRefused) {
  GpuOptions options = validatedOptions();
  for (const uint32_t number : {uint32_t{0}, gpu_->choices() + 1}) {
    options.number = number;
    const auto gpu = Gpu::open(options);
    ASSERT_FALSE(gpu) << number;
    EXPECT_EQ(gpu.error().code(), ErrorCode::kUnavailableDevice);
  }
  options.number = gpu_->choices();
  EXPECT_TRUE(Gpu::open(options));
}

TEST_F(GpuTest, EveryShaderBecomesAPipeline) {
  const auto pipelines = Pipelines::create(gpu_);
  ASSERT_TRUE(pipelines);
  for (const EmbeddedShader& shader : embeddedShaders()) {
    const auto pipeline = (*pipelines)->find({std::string(shader.name), 0});
    EXPECT_TRUE(pipeline) << shader.name << ": " << pipeline.error().toString();
  }
  EXPECT_FALSE((*pipelines)->find({"no such shader", 0}));
}

TEST_F(GpuTest, AnExhaustedMemoryIsNoLoss) {
  functions().vkAllocateMemory = [](VkDevice, const VkMemoryAllocateInfo*,
                                    const VkAllocationCallbacks*, VkDeviceMemory*) {
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  };
  const auto buffer = Buffer::create(gpu_, 64, Buffer::Kind::kDevice);
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().code(), ErrorCode::kResourceExhaustedTransient);
  EXPECT_FALSE(gpu_->isLost());
}

TEST_F(GpuTest, MoreThanTheDeviceGivesInOnePieceIsRefused) {
  const auto buffer = Buffer::create(gpu_, gpu_->facts().maxAllocation + 1, Buffer::Kind::kDevice);
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().code(), ErrorCode::kResourceExhaustedPersistent);
}

TEST_F(GpuTest, ALostDeviceIsADeadObjectFromThenOn) {
  auto commands = Commands::create(gpu_);
  ASSERT_TRUE(commands);
  ASSERT_TRUE((*commands)->begin());
  ASSERT_TRUE((*commands)->end());
  ASSERT_TRUE((*commands)->run());
  functions().vkQueueSubmit = [](VkQueue, uint32_t, const VkSubmitInfo*, VkFence) {
    return VK_ERROR_DEVICE_LOST;
  };
  for (int i = 0; i < 2; ++i) {
    const Status status = (*commands)->run();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::kDeadObject);
  }
  EXPECT_TRUE(gpu_->isLost());
}

TEST_F(GpuTest, AWaitThatDoesNotEndIsALoss) {
  auto commands = Commands::create(gpu_);
  ASSERT_TRUE(commands);
  ASSERT_TRUE((*commands)->begin());
  ASSERT_TRUE((*commands)->end());
  functions().vkWaitForFences = [](VkDevice, uint32_t, const VkFence*, VkBool32, uint64_t timeout) {
    return timeout == UINT64_MAX ? VK_SUCCESS : VK_TIMEOUT;
  };
  const Status status = (*commands)->run();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::kDeadObject);
  EXPECT_TRUE(gpu_->isLost());
}

}  // namespace
}  // namespace hearth::vulkan
