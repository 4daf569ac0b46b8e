// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "drivers/vulkan/prepared_model.h"
#include "hal/cts/model_builder.h"
#include "memory/pool.h"

namespace hearth::vulkan {

// Models whose arguments lie in memories of the client. Tests are skipped where the CPU's
// implementation of Vulkan is not installed.
class ImportsTest : public testing::Test {
 protected:
  static constexpr uint32_t kCount = 1000;
  static constexpr uint64_t kBytes = kCount * sizeof(float);
  // Of a tensor in a buffer, on any GPU.
  static constexpr uint64_t kPlace = 4096;

  // Opens the GPU, which then imports little memories, too; prepare() follows.
  void SetUp() override;
  // A model that subtracts two tensors.
  void prepare();
  // One that also returns the first of them.
  void prepareWithCopy();

  static hal::Argument in(const memory::PoolRef& pool, uint64_t offset);
  static void write(const memory::PoolRef& pool, uint64_t offset, const std::vector<float>& from);
  static std::vector<float> read(const memory::PoolRef& pool, uint64_t offset);
  // Runs with arguments at these places of one memory, and says how many bytes were copied.
  uint64_t run(const memory::PoolRef& pool, uint64_t a, uint64_t b, uint64_t output);
  // Runs the model of prepareWithCopy(), with the inputs and the copy in the first two places of
  // one memory and behind them, and the difference where `difference` is.
  uint64_t runWithCopy(const memory::PoolRef& pool, const hal::Argument& difference);

  OpenGpu open_;
  std::shared_ptr<VulkanPreparedModel> prepared_;
  std::vector<float> a_, b_, expected_;

 private:
  // Returns the first tensor.
  static uint32_t addDifference(hal::cts::ModelBuilder* builder);
  void prepare(hal::cts::ModelBuilder& builder);
};

}  // namespace hearth::vulkan
