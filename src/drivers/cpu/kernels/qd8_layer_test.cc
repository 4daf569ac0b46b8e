// SPDX-License-Identifier: Apache-2.0
// A hybrid layer stays inside the memory that it gets. Its numbers are compared where whole models
// are.
#include "drivers/cpu/kernels/qd8_layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hearth_xnnpack.h>

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "drivers/cpu/weights/xnnpack_panels.h"
#include "hal/cts/guarded_memory.h"

namespace hearth::cpu {
namespace {

using hal::cts::GuardedMemory;

TEST(Qd8LayerTest, PreparesItsRowsAndNoOthers) {
  if (!hasQd8Gemm()) GTEST_SKIP() << "this CPU or XNNPACK does without";
  constexpr size_t kRows = 5;
  constexpr size_t kInputs = 72;
  constexpr float kBias = 1.5f;
  Qd8Gemm product;
  product.inputs = kInputs;
  product.columns = product.outputStride = kQd8Columns;
  product.lowest = -std::numeric_limits<float>::infinity();
  product.highest = std::numeric_limits<float>::infinity();
  // Weights of zero, behind which are the biases.
  std::vector<float> packed(product.panelBytes() / sizeof(float));
  std::fill(packed.end() - kQd8Columns, packed.end(), kBias);
  product.packed = reinterpret_cast<const uint8_t*>(packed.data());

  Qd8Layer layer;
  layer.rows = kRows;
  layer.source = {0, 1};
  layer.destination = 2;
  const std::unique_ptr<Kernel> kernel = makeQd8LayerKernel(layer, product);
  const auto workspaceBytes = kernel->reshape(nullptr);
  ASSERT_TRUE(workspaceBytes) << workspaceBytes.error().toString();
  const GuardedMemory numbers(kRows * kInputs, GuardedMemory::Place::kAtEnd);
  std::vector<xnn_quantization_params> parameters(kRows + XNN_EXTRA_QUANTIZATION_PARAMS, {3, 0.5f});
  std::vector<float> output(kRows * kQd8Columns);
  const GuardedMemory workspace(*workspaceBytes, GuardedMemory::Place::kAtEnd);
  void* const addresses[] = {numbers.data(), parameters.data(), output.data()};
  ASSERT_TRUE(kernel->setup(addresses, workspace.data()));
  ASSERT_TRUE(kernel->run(nullptr));
  EXPECT_THAT(output, testing::Each(kBias));
}

}  // namespace
}  // namespace hearth::cpu
