// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/control_flow.h"

#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/plan/execution_context.h"
#include "drivers/cpu/plan/nested_graph.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "drivers/cpu/plan/run_limits.h"
#include "ops/control_flow.h"

namespace hearth::cpu {
namespace {

using Buffer = ExecutionContext::Buffer;

// An operand outside as the subgraphs see it. Values that the execution graph outside reads have
// readable bytes behind them. A value that it only writes may be memory of the client, which has
// none.
struct Passed {
  ValueId value = 0;
  uint64_t bytes = 0;
  bool isGiven = false;  // false: an output that nobody wants

  Buffer asInput(std::span<void* const> addresses) const { return {addresses[value], bytes, true}; }
  Buffer asOutput(std::span<void* const> addresses) const {
    return {isGiven ? addresses[value] : nullptr, bytes, false};
  }
};

// The values of the operation's inputs from `first` on.
std::vector<Passed> passedInputs(PlanBuilder* builder, size_t first) {
  std::vector<Passed> inputs;
  const ops::OperationContext& context = builder->context();
  for (size_t i = first; i < context.inputs.size(); ++i) {
    const uint32_t operand = context.operation->inputs[i];
    inputs.push_back({builder->read(operand), tensorBytes(context.inputs[i]), true});
  }
  return inputs;
}

std::vector<Passed> passedOutputs(PlanBuilder* builder) {
  std::vector<Passed> outputs;
  const ops::OperationContext& context = builder->context();
  for (size_t i = 0; i < context.outputs.size(); ++i) {
    const ops::Tensor& tensor = context.outputs[i];
    if (!tensor.isPresent) {
      outputs.push_back({0, builder->nested().back()->outputBytes()[i], false});
      continue;
    }
    outputs.push_back({builder->write(context.operation->outputs[i]), tensorBytes(tensor), true});
  }
  return outputs;
}

std::vector<ValueId> valuesOf(const std::vector<Passed>& list) {
  std::vector<ValueId> values;
  for (const Passed& passed : list)
    if (passed.isGiven) values.push_back(passed.value);
  return values;
}

// Runs a context of a subgraph within the run of a kernel.
Status runNested(ExecutionContext& context, std::span<const Buffer> inputs,
                 std::span<const Buffer> outputs, threads::ThreadPool* pool) {
  return context.runInside(inputs, outputs, pool, RunLimits::ofThread().deadline);
}

class IfKernel final : public Kernel {
 public:
  struct Parts {
    Passed condition;
    std::vector<Passed> inputs, outputs;
    std::array<std::shared_ptr<NestedGraph>, 2> branches;  // else, then
  };
  explicit IfKernel(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    for (size_t i = 0; i < contexts_.size(); ++i) {
      HEARTH_ASSIGN(contexts_[i], parts_->branches[i]->makeContext(pool));
    }
    return 0;
  }

  Status setup(std::span<void* const> addresses, void* /*workspace*/) override {
    condition_ = static_cast<const uint8_t*>(addresses[parts_->condition.value]);
    inputs_.clear();
    outputs_.clear();
    for (const Passed& input : parts_->inputs) inputs_.push_back(input.asInput(addresses));
    for (const Passed& output : parts_->outputs) outputs_.push_back(output.asOutput(addresses));
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    return runNested(*contexts_[*condition_ != 0 ? 1 : 0], inputs_, outputs_, pool);
  }

 private:
  const std::shared_ptr<const Parts> parts_;
  std::array<std::shared_ptr<ExecutionContext>, 2> contexts_;
  const uint8_t* condition_ = nullptr;
  std::vector<Buffer> inputs_, outputs_;
};

// The state of the loop lies in two buffers, one of which each iteration reads while it writes the
// other; a part of the state that the body can write over its own input has one memory for both.
// Each side has contexts of its own, so that no iteration has to set up kernels.
class WhileKernel final : public Kernel {
 public:
  struct Parts {
    std::vector<Passed> inputs, outputs;
    std::array<std::vector<ValueId>, 2> states;  // by side and input
    std::shared_ptr<NestedGraph> condition, body;
  };
  explicit WhileKernel(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    HEARTH_ASSIGN(sides_[0].body, parts_->body->makeContext(pool));
    isInPlace_.clear();
    bool areAllInPlace = true;
    for (size_t i = 0; i < parts_->inputs.size(); ++i) {
      isInPlace_.push_back(sides_[0].body->mayOverwrite(i, i));
      areAllInPlace &= isInPlace_.back();
    }
    HEARTH_ASSIGN(sides_[0].condition, parts_->condition->makeContext(pool));
    if (areAllInPlace) {
      sides_[1] = sides_[0];
      return 0;
    }
    HEARTH_ASSIGN(sides_[1].body, parts_->body->makeContext(pool));
    HEARTH_ASSIGN(sides_[1].condition, parts_->condition->makeContext(pool));
    return 0;
  }

  Status setup(std::span<void* const> addresses, void* /*workspace*/) override {
    inputs_.clear();
    outputs_.clear();
    for (const Passed& input : parts_->inputs) inputs_.push_back(input.asInput(addresses));
    for (const Passed& output : parts_->outputs) outputs_.push_back(output.asOutput(addresses));
    for (size_t side = 0; side < sides_.size(); ++side) {
      sides_[side].state.clear();
      for (size_t i = 0; i < inputs_.size(); ++i)
        sides_[side].state.push_back({addresses[parts_->states[isInPlace_[i] ? 0 : side][i]],
                                      parts_->inputs[i].bytes, true});
    }
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    const uint64_t timeout = RunLimits::ofThread().loopTimeoutNanoseconds;
    const auto end = base::Deadline::after(timeout);
    for (size_t i = 0; i < inputs_.size(); ++i)
      std::memcpy(sides_[0].state[i].data, inputs_[i].data, inputs_[i].bytes);
    size_t side = 0;
    while (true) {
      alignas(8) std::array<uint8_t, 8> goesOn = {};
      const Buffer answer{goesOn.data(), 1, false};
      HEARTH_TRY_CONTEXT(runNested(*sides_[side].condition, sides_[side].state, {&answer, 1}, pool),
                         "in the condition of WHILE");
      if (goesOn[0] == 0) break;
      if (end.hasPassed())
        return fail(ErrorCode::kMissedDeadlineTransient, "WHILE runs for more than {} ms.",
                    timeout / 1'000'000);
      HEARTH_TRY_CONTEXT(
          runNested(*sides_[side].body, sides_[side].state, sides_[1 - side].state, pool),
          "in the body of WHILE");
      side = 1 - side;
    }
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i].data != nullptr)
        std::memcpy(outputs_[i].data, sides_[side].state[i].data, outputs_[i].bytes);
    return {};
  }

 private:
  struct Side {
    std::shared_ptr<ExecutionContext> condition, body;
    std::vector<Buffer> state;
  };
  const std::shared_ptr<const Parts> parts_;
  std::array<Side, 2> sides_;
  std::vector<bool> isInPlace_;  // by input
  std::vector<Buffer> inputs_, outputs_;
};

template <typename KernelType>
void setKernel(Node* node, typename KernelType::Parts parts) {
  node->create = [shared = std::make_shared<const typename KernelType::Parts>(
                      std::move(parts))]() -> Result<std::unique_ptr<Kernel>> {
    return std::make_unique<KernelType>(shared);
  };
}

}  // namespace

Result<bool> addIf(PlanBuilder* builder) {
  IfKernel::Parts parts;
  const uint32_t condition = builder->context().operation->inputs[ops::kIfCondition];
  parts.condition = {builder->read(condition), 1, true};
  parts.inputs = passedInputs(builder, ops::kIfFirstInput);
  parts.outputs = passedOutputs(builder);
  parts.branches = {builder->nested()[1], builder->nested()[0]};
  std::vector<ValueId> inputs = valuesOf(parts.inputs);
  inputs.push_back(parts.condition.value);
  Node& node = builder->add("own", std::move(inputs), valuesOf(parts.outputs));
  setKernel<IfKernel>(&node, std::move(parts));
  return true;
}

Result<bool> addWhile(PlanBuilder* builder) {
  WhileKernel::Parts parts;
  parts.inputs = passedInputs(builder, ops::kWhileFirstInput);
  parts.outputs = passedOutputs(builder);
  parts.condition = builder->nested()[0];
  parts.body = builder->nested()[1];
  std::vector<ValueId> outputs = valuesOf(parts.outputs);
  for (std::vector<ValueId>& side : parts.states)
    for (const Passed& input : parts.inputs) {
      side.push_back(builder->temporary(input.bytes));
      outputs.push_back(side.back());
    }
  Node& node = builder->add("own", valuesOf(parts.inputs), std::move(outputs));
  setKernel<WhileKernel>(&node, std::move(parts));
  return true;
}

}  // namespace hearth::cpu
