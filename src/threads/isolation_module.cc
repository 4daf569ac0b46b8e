// SPDX-License-Identifier: Apache-2.0
// A library as an application would load it; see isolation_test.cc.
#include <hearth_xnnpack.h>

#include <limits>
#include <vector>

#include "threads/export.h"
#include "threads/thread_pool.h"

// Multiplies a row of ones by a 64 x 64 matrix of ones with the private XNNPACK. Returns the number
// of calls that our pool received, or a negative number for the step that failed.
extern "C" HEARTH_THREADS_EXPORT int multiplyOnOurPool();

int multiplyOnOurPool() {
  constexpr size_t kSize = 64;
  if (xnn_initialize(nullptr) != xnn_status_success) return -1;
  auto pool = hearth::threads::ThreadPool::create(2);
  if (!pool) return -2;
  const std::vector<float> weights(kSize * kSize, 1.0f);
  const std::vector<float> input(kSize + XNN_EXTRA_BYTES, 1.0f);
  std::vector<float> output(kSize);
  const float infinity = std::numeric_limits<float>::infinity();
  xnn_operator_t op = nullptr;
  if (xnn_create_fully_connected_nc_f32(kSize, kSize, kSize, kSize, weights.data(), nullptr,
                                        -infinity, infinity, 0, nullptr, nullptr,
                                        &op) != xnn_status_success)
    return -3;
  pthreadpool_t handle = (*pool)->nativeHandle();
  int result = 0;
  if (xnn_reshape_fully_connected_nc_f32(op, 1, handle) != xnn_status_success ||
      xnn_setup_fully_connected_nc_f32(op, input.data(), output.data()) != xnn_status_success ||
      xnn_run_operator(op, handle) != xnn_status_success)
    result = -4;
  xnn_delete_operator(op);
  for (float value : output)
    if (value != static_cast<float>(kSize) && result == 0) result = -5;
  return result != 0 ? result : static_cast<int>((*pool)->counters().calls);
}
