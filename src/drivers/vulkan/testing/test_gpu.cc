// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/testing/test_gpu.h"

#include <gtest/gtest.h>

#include <utility>

namespace hearth::vulkan {
namespace {

// Returns nothing, as what skips a test has to.
void open(const GpuOptions& options, std::shared_ptr<Gpu>* opened) {
  auto gpu = Gpu::open(options);
  if (!gpu && gpu.error().code() == ErrorCode::kUnavailableDevice)
    GTEST_SKIP() << gpu.error().toString();
  ASSERT_TRUE(gpu) << gpu.error().toString();
  *opened = *std::move(gpu);
}

}  // namespace

std::shared_ptr<Gpu> openTestGpu(const GpuOptions& options) {
  std::shared_ptr<Gpu> gpu;
  open(options, &gpu);
  return gpu;
}

}  // namespace hearth::vulkan
