// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/sequence_lstm.h"

#include <optional>
#include <utility>

#include "drivers/cpu/kernels/shared_kernel.h"
#include "drivers/cpu/lowering/declined.h"
#include "ops/quantized_sequence_lstm.h"

namespace hearth::cpu {
namespace {

using namespace ops::quantized_sequence_lstm;

class SequenceLstmKernel final : public Kernel {
 public:
  SequenceLstmKernel(ops::OperationContext context, OperationArguments arguments)
      : context_(std::move(context)), arguments_(std::move(arguments)) {}

  Result<size_t> reshape(threads::ThreadPool*) override { return 0; }

  Status setup(std::span<void* const> addresses, void*) override {
    bindArguments(addresses, arguments_, &context_);
    if (!lstm_) {
      HEARTH_ASSIGN(lstm_, ops::QuantizedSequenceLstm::make(context_));
    }
    return {};
  }

  Status run(threads::ThreadPool*) override {
    lstm_->run(context_);
    return {};
  }

 private:
  ops::OperationContext context_;
  const OperationArguments arguments_;
  std::optional<ops::QuantizedSequenceLstm> lstm_;
};

}  // namespace

Result<bool> lowerQuantizedSequenceLstm(PlanBuilder* builder) {
  const ops::OperationContext& context = builder->context();
  for (uint32_t i = 0; i < kInputCount; ++i) {
    const bool varies = i == kInput || i == kOutputState || i == kCellState;
    if (!varies && context.hasInput(i) && context.inputs[i].data == nullptr)
      return builder->decline(kComputedWeights);
  }
  const auto [node, arguments] = builder->addArguments("own", context);
  node.create = [context, arguments = arguments]() -> Result<std::unique_ptr<Kernel>> {
    return std::make_unique<SequenceLstmKernel>(context, arguments);
  };
  return true;
}

}  // namespace hearth::cpu
