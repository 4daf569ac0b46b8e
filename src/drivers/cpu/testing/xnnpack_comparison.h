// SPDX-License-Identifier: Apache-2.0
// For tests: runs convolutions of XNNPACK, and kernels of ours that must give the same bytes.
#pragma once

#include <gtest/gtest.h>
#include <hearth_xnnpack.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/microkernels/portable/convolution.h"
#include "drivers/cpu/platform/kernel_traits.h"
#include "threads/thread_pool.h"

namespace hearth::cpu {

// Reshapes, sets up and runs a convolution of XNNPACK through the functions of its type.
template <typename T, typename Reshape, typename Setup>
std::vector<T> runXnnpackConvolution(xnn_operator_t op, const Convolution& g, Reshape reshape,
                                     Setup setup, std::vector<T> input, size_t outputs) {
  size_t workspaceSize = 0, alignment = 0, height = 0, width = 0;
  EXPECT_EQ(reshape(op, g.batch, g.inputHeight, g.inputWidth, &workspaceSize, &alignment, &height,
                    &width, nullptr),
            xnn_status_success);
  std::vector<uint8_t> workspace(workspaceSize + 64);
  void* aligned = workspace.data();
  size_t room = workspace.size();
  std::align(64, workspaceSize, aligned, room);
  // XNNPACK reads past its input.
  input.resize(input.size() + XNN_EXTRA_BYTES / sizeof(T));
  std::vector<T> output(outputs + XNN_EXTRA_BYTES / sizeof(T));
  EXPECT_EQ(setup(op, aligned, input.data(), output.data()), xnn_status_success);
  EXPECT_EQ(xnn_run_operator(op, nullptr), xnn_status_success);
  output.resize(outputs);
  return output;
}

// What runGuarded() leaves in elements that a kernel does not write.
template <typename T>
inline constexpr T kUntouched = static_cast<T>(85);

// Runs a kernel for which value 0 is the input and value 1 the output. The input ends where its
// memory ends, and the kernel must write nothing before and behind the output.
template <typename T>
std::vector<T> runGuarded(Kernel* kernel, std::vector<T> input, size_t outputs,
                          threads::ThreadPool* pool) {
  constexpr size_t kGuard = 64;
  std::vector<T> output(outputs + 2 * kGuard, kUntouched<T>);
  const Result<size_t> workspaceBytes = kernel->reshape(pool);
  EXPECT_TRUE(workspaceBytes);
  // Not zero: another kernel may have used the scratch memory.
  std::vector<uint8_t> workspace(workspaceBytes.value_or(0), 0xA5);
  void* const addresses[] = {input.data(), output.data() + kGuard};
  EXPECT_TRUE(kernel->setup(addresses, workspace.data()));
  EXPECT_TRUE(kernel->run(pool));
  for (size_t i = 0; i < kGuard; ++i) {
    EXPECT_EQ(output[i], kUntouched<T>);
    EXPECT_EQ(output[kGuard + outputs + i], kUntouched<T>);
  }
  return {output.begin() + kGuard, output.end() - kGuard};
}

// Compares kernels of ours with XNNPACK's.
class XnnpackComparisonTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(initializeXnnpack());
    pool_ = threads::ThreadPool::create(3).value();
  }

  // `run` has to return `expected` on the calling thread alone and on a pool.
  template <typename T, typename Run>
  void expectOnOneThreadAndOnThree(const std::vector<T>& expected, unsigned seed, const Run& run) {
    ASSERT_EQ(run(nullptr), expected) << seed;
    ASSERT_EQ(run(pool_.get()), expected) << seed;
  }

  std::unique_ptr<threads::ThreadPool> pool_;
};

}  // namespace hearth::cpu
