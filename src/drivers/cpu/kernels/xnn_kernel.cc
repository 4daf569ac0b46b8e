// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernels/xnn_kernel.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "base/format.h"
#include "threads/thread_pool.h"

namespace hearth::cpu {
namespace {

// The least and the greatest of positive numbers. Their bits compare as the numbers do, and
// comparing integers is vectorized.
std::pair<float, float> extremesOf(std::span<const float> values) {
  int32_t least = std::bit_cast<int32_t>(values.front());
  int32_t greatest = least;
  for (const float value : values) {
    least = std::min(least, std::bit_cast<int32_t>(value));
    greatest = std::max(greatest, std::bit_cast<int32_t>(value));
  }
  return {std::bit_cast<float>(least), std::bit_cast<float>(greatest)};
}

pthreadpool_t handleOf(threads::ThreadPool* pool) {
  return pool == nullptr ? nullptr : pool->nativeHandle();
}

class XnnKernel final : public Kernel {
 public:
  XnnKernel(const char* call, XnnOperator op, XnnCalls calls)
      : call_(call), operator_(std::move(op)), calls_(std::move(calls)) {}

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    size_t workspace = 0;
    size_t alignment = 1;
    const xnn_status status =
        calls_.reshape(operator_.get(), &workspace, &alignment, handleOf(pool));
    if (status != xnn_status_success) return std::unexpected(xnnError(status, call_));
    workspaceSize_ = workspace;
    return workspace;
  }

  Status setup(std::span<void* const> addresses, void* workspace) override {
    // Some operators convert their result when they get a workspace that they did not ask for.
    if (workspaceSize_ == 0) workspace = nullptr;
    workspace_ = workspace;
    const xnn_status status = calls_.setup(operator_.get(), workspace, addresses);
    if (status != xnn_status_success) return std::unexpected(xnnError(status, call_));
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    if (calls_.needsZeroWorkspace && workspace_ != nullptr)
      std::memset(workspace_, 0, workspaceSize_);
    const threads::GemmHintScope scope(calls_.hint);
    const xnn_status status = xnn_run_operator(operator_.get(), handleOf(pool));
    if (status != xnn_status_success) return std::unexpected(xnnError(status, call_));
    return {};
  }

 private:
  const char* call_;
  XnnOperator operator_;
  XnnCalls calls_;
  size_t workspaceSize_ = 0;
  void* workspace_ = nullptr;
};

}  // namespace

bool requantizationFits(const graph::Operand& input, const graph::Operand& filter,
                        const graph::Operand& output) {
  if (!graph::isQuantized(input.type)) return true;
  const double factor = static_cast<double>(input.scale) / output.scale;
  if (filter.type != graph::OperandType::kTensorQuant8SymmPerChannel)
    return isScaleInRange(factor * filter.scale, -32, 8);
  // All scales are in range if the extremes are.
  const auto [least, greatest] = extremesOf(filter.perChannel.scales);
  return isScaleInRange(factor * least, -32, 8) && isScaleInRange(factor * greatest, -32, 8);
}

bool activationFits(ops::FusedActivation activation, const graph::Operand& output) {
  if (!graph::isQuantized(output.type)) return true;
  const ops::QuantizedRange range = ops::quantizedActivationRange(activation, output);
  return range.lowest < range.highest;
}

Result<std::unique_ptr<Kernel>> makeXnnKernel(const char* call, xnn_status status,
                                              xnn_operator_t op, XnnCalls calls) {
  if (status != xnn_status_success) return std::unexpected(xnnError(status, call));
  return std::make_unique<XnnKernel>(call, XnnOperator(op), std::move(calls));
}

}  // namespace hearth::cpu
