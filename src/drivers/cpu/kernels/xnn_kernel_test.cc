// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernels/xnn_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "drivers/cpu/platform/kernel_traits.h"

namespace hearth::cpu {
namespace {

// XNNPACK's product of matrices packs the right one in the workspace. Its kernels for AMD's first
// Zen processors read groups of four rows there, the last of which may lie beyond the matrix.
TEST(XnnKernelTest, TheWorkspaceIsZeroBeforeEachRunWhereThatIsNeeded) {
  ASSERT_TRUE(initializeXnnpack());
  constexpr size_t kRows = 3, kDepth = 2, kColumns = 2, kMore = 256;
  const std::array<float, kRows * kDepth> left = {1, 2, 3, 4, 5, 6};
  const std::array<float, kDepth * kColumns> right = {10, 20, 30, 40};
  std::array<float, kRows * kColumns> product{};
  xnn_operator_t op = nullptr;
  const xnn_status status = xnn_create_batch_matrix_multiply_nc_f32(0, &op);
  XnnCalls calls;
  calls.needsZeroWorkspace = true;
  calls.reshape = [&](xnn_operator_t o, size_t* workspace, size_t* alignment, pthreadpool_t pool) {
    const size_t batches = 1;
    const xnn_status reshaped = xnn_reshape_batch_matrix_multiply_nc_f32(
        o, 1, &batches, &batches, kRows, kDepth, kColumns, workspace, alignment, pool);
    *workspace += kMore;
    return reshaped;
  };
  calls.setup = [&](xnn_operator_t o, void* workspace, std::span<void* const> at) {
    return xnn_setup_batch_matrix_multiply_nc_f32(o, workspace, static_cast<const float*>(at[0]),
                                                  static_cast<const float*>(at[1]),
                                                  static_cast<float*>(at[2]));
  };
  const auto kernel = makeXnnKernel("batch_matrix_multiply_nc_f32", status, op, std::move(calls));
  ASSERT_TRUE(kernel);
  const auto size = (*kernel)->reshape(nullptr);
  ASSERT_TRUE(size);
  std::vector<uint8_t> memory(*size + 64);
  uint8_t* const workspace = memory.data() + 64 - reinterpret_cast<uintptr_t>(memory.data()) % 64;
  // The kernel writes to its inputs' addresses no more than XNNPACK does.
  void* const addresses[] = {const_cast<float*>(left.data()), const_cast<float*>(right.data()),
                             product.data()};
  ASSERT_TRUE((*kernel)->setup(addresses, workspace));
  for (int run = 0; run < 2; ++run) {
    std::fill(workspace, workspace + *size, uint8_t{0x7f});
    ASSERT_TRUE((*kernel)->run(nullptr));
    EXPECT_THAT(product, testing::ElementsAre(70, 100, 150, 220, 230, 340));
    EXPECT_THAT(std::span(workspace + *size - kMore, kMore), testing::Each(0));
  }
}

}  // namespace
}  // namespace hearth::cpu
