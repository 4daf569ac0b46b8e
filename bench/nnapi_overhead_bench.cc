// SPDX-License-Identifier: Apache-2.0
// Measures what the C API and the runtime add to XNNPACK: one ADD of 16 floats, computed by a
// reusable execution and by XNNPACK's operator. The limit is 2 microseconds; above it the exit code
// is 1.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

#include "hearth/nnapi.hpp"
#include "hearth_xnnpack.h"

namespace {

constexpr size_t kCount = 16;
constexpr int kCalls = 20'000;
constexpr int kRounds = 21;
constexpr double kMaxOverhead = 2000;

using Floats = std::array<float, kCount>;

void check(xnn_status status, const char* call) {
  if (status == xnn_status_success) return;
  std::fprintf(stderr, "%s gives %d.\n", call, status);
  std::exit(1);
}

// Nanoseconds of one call: the median over rounds.
template <typename Call>
double measure(Call call) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    rounds.push_back(time.count() / kCalls);
  }
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  return rounds[kRounds / 2];
}

double measureXnnpack(const Floats& a, const Floats& b, Floats& sum) {
  check(xnn_initialize(nullptr), "xnn_initialize");
  xnn_operator_t add = nullptr;
  check(xnn_create_binary_elementwise_nd(xnn_binary_add, xnn_datatype_fp32, nullptr, nullptr,
                                         nullptr, 0, &add),
        "xnn_create_binary_elementwise_nd");
  const size_t shape[] = {kCount};
  check(xnn_reshape_binary_elementwise_nd(add, 1, shape, 1, shape, nullptr),
        "xnn_reshape_binary_elementwise_nd");
  check(xnn_setup_binary_elementwise_nd(add, a.data(), b.data(), sum.data()),
        "xnn_setup_binary_elementwise_nd");
  const double time = measure([&] { check(xnn_run_operator(add, nullptr), "xnn_run_operator"); });
  xnn_delete_operator(add);
  return time;
}

double measureNnapi(const Floats& a, const Floats& b, Floats& sum) {
  namespace ndk = hearth::ndk;
  const ndk::Type type = {ANEURALNETWORKS_TENSOR_FLOAT32, {kCount}, 0, 0};
  ndk::Model model;
  const uint32_t left = model.operand(type);
  const uint32_t right = model.operand(type);
  const uint32_t result = model.operand(type);
  model.operation(ANEURALNETWORKS_ADD, {left, right, model.int32(ANEURALNETWORKS_FUSED_NONE)},
                  {result});
  model.finish({left, right}, {result});
  ndk::Compilation compilation(model, {ndk::findDevice("hearth-cpu")});
  compilation.finish();
  ndk::Execution execution(compilation);
  execution.reusable().input(0, a).input(1, b).output(0, sum);
  return measure([&] { execution.compute(); });
}

}  // namespace

int main() {
  // With room for the bytes that XNNPACK reads after its inputs.
  alignas(64) static std::array<Floats, 4> values{};
  values[0].fill(1);
  values[1].fill(2);
  const double direct = measureXnnpack(values[0], values[1], values[2]);
  values[2].fill(0);
  const double nnapi = measureNnapi(values[0], values[1], values[2]);
  if (values[2][kCount - 1] != 3) {
    std::fprintf(stderr, "The sum is %g.\n", values[2][kCount - 1]);
    return 1;
  }
  std::printf("one ADD of %zu floats, nanoseconds\n", kCount);
  std::printf("XNNPACK's operator       %8.0f\n", direct);
  std::printf("reusable NNAPI execution %8.0f\n", nnapi);
  std::printf("overhead                 %8.0f (bound %.0f)\n", nnapi - direct, kMaxOverhead);
  return nnapi - direct <= kMaxOverhead ? 0 : 1;
}
