// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/cpu_execution.h"

#include <chrono>
#include <utility>
#include <vector>

#include "drivers/cpu/plan/execution_context.h"
#include "drivers/cpu/plan/run_limits.h"
#include "drivers/cpu/prepared_model.h"

namespace hearth::cpu {
namespace {

class CpuExecution final : public hal::Execution {
 public:
  CpuExecution(std::shared_ptr<CpuPreparedModel> prepared, hal::BoundRequest request)
      : prepared_(std::move(prepared)), request_(std::move(request)) {
    const auto hasTail = [&](const ops::RunArgument& argument, uint64_t length) {
      if (argument.hasReadableTail) return true;
      const auto begin = reinterpret_cast<uintptr_t>(argument.data);
      for (const memory::PoolRef& pool : request_.pools) {
        const auto base = reinterpret_cast<uintptr_t>(pool->data());
        if (pool->kind() != memory::PoolKind::kBorrowed && begin >= base &&
            begin + length <= base + pool->size())
          return true;
      }
      return false;
    };
    for (const ops::RunArgument& argument : request_.inputs)
      inputs_.push_back({argument.data, argument.length, hasTail(argument, argument.length)});
    for (size_t i = 0; i < request_.outputs.size(); ++i) {
      const ops::RunArgument& argument = request_.outputs[i];
      const uint64_t needed = prepared_->outputBytes()[i];
      outputs_.push_back(
          {argument.isPresent ? argument.data : nullptr, needed, hasTail(argument, needed)});
      const bool isSufficient = !argument.isPresent || argument.length >= needed;
      shapes_.push_back({prepared_->outputDimensions()[i], isSufficient});
      allSufficient_ &= isSufficient;
    }
  }

  hal::ExecutionResult compute(const base::Deadline& deadline) override {
    hal::ExecutionResult result;
    if (deadline.hasPassed()) {
      result.status = fail(ErrorCode::kMissedDeadlinePersistent,
                           "The deadline passes before the computation starts.");
      return result;
    }
    if (!allSufficient_) {
      result.outputShapes = shapes_;
      result.status = fail(ErrorCode::kOutputInsufficientSize, "An output buffer is too small.");
      return result;
    }
    const auto start = std::chrono::steady_clock::now();
    const uint64_t copied = ExecutionContext::copiedBytes();
    const RunLimits limits{deadline, request_.loopTimeout};
    const RunLimitsScope scope(limits);
    result.status = prepared_->run(inputs_, outputs_, deadline);
    result.copiedBytes = ExecutionContext::copiedBytes() - copied;
    // Of mappings that only this request has.
    if (result.status) result.status = hal::checkMemoriesWhole(request_.pools);
    if (!result.status) return result;
    result.outputShapes = shapes_;
    result.timing.inDriver =
        static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                  std::chrono::steady_clock::now() - start)
                                  .count());
    result.timing.onDevice = result.timing.inDriver;
    return result;
  }

 private:
  std::shared_ptr<CpuPreparedModel> prepared_;
  hal::BoundRequest request_;
  std::vector<ExecutionContext::Buffer> inputs_;
  std::vector<ExecutionContext::Buffer> outputs_;
  hal::OutputShapes shapes_;  // the same for each computation
  bool allSufficient_ = true;
};

}  // namespace

std::unique_ptr<hal::Execution> cpuExecution(std::shared_ptr<CpuPreparedModel> prepared,
                                             hal::BoundRequest request) {
  return std::make_unique<CpuExecution>(std::move(prepared), std::move(request));
}

}  // namespace hearth::cpu
