// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "hal/cts/model_builder.h"
#include "hal/device.h"

namespace hearth::vulkan {

// Compares the device with the reference kernels. Tests are skipped where the CPU's implementation
// of Vulkan is not installed.
class ReferenceTest : public testing::Test {
 protected:
  void SetUp() override;

  std::vector<uint8_t> bytes(size_t count);
  // float32 numbers from -2 to 2.
  std::vector<uint8_t> reals(size_t count);

  // For these inputs the model has the same output as with the reference kernels.
  void expectReference(const hal::cts::ModelBuilder& builder,
                       const std::vector<std::vector<uint8_t>>& inputs);
  // The same of float32 numbers, which may differ by `tolerance` times the expected number, or 1 if
  // that is greater.
  void expectNearReference(const hal::cts::ModelBuilder& builder,
                           const std::vector<std::vector<uint8_t>>& inputs, float tolerance);

  std::mt19937 random_{41};
  std::shared_ptr<hal::Device> device_;

 private:
  struct Results {
    std::vector<uint8_t> computed;
    std::vector<uint8_t> expected;
  };
  void computeBoth(const hal::cts::ModelBuilder& builder,
                   const std::vector<std::vector<uint8_t>>& inputs, Results* results);
};

// The output of a model with one output for these inputs.
Result<std::vector<uint8_t>> computeModel(hal::PreparedModel& prepared, const graph::Model& model,
                                          std::vector<std::vector<uint8_t>> inputs);

}  // namespace hearth::vulkan
