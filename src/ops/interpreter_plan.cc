// SPDX-License-Identifier: Apache-2.0
// What Interpreter determines before any run: kernels, last uses, alignment and activation memory.
#include <algorithm>
#include <limits>

#include "graph/nesting.h"
#include "ops/interpreter.h"
#include "ops/interpreter_state.h"

namespace hearth::ops {
namespace {

using graph::Lifetime;

// Depth of each subgraph: 1 + that of the deepest subgraph that it refers to. Subgraphs form no
// cycle (graph::validate()), but they may form a chain that is as long as the model.
Status checkNesting(const graph::Model& model) {
  const size_t count = model.subgraphs.size();
  std::vector<std::vector<uint32_t>> callers(count);
  std::vector<size_t> open(count, 0);
  for (size_t g = 0; g < count; ++g)
    for (const graph::Operand& operand : model.subgraphs[g].operands)
      if (operand.lifetime == Lifetime::kSubgraph) {
        callers[operand.subgraphIndex].push_back(static_cast<uint32_t>(g));
        ++open[g];
      }
  std::vector<size_t> depths(count, 1);
  std::vector<uint32_t> ready;
  for (size_t g = 0; g < count; ++g)
    if (open[g] == 0) ready.push_back(static_cast<uint32_t>(g));
  while (!ready.empty()) {
    const uint32_t done = ready.back();
    ready.pop_back();
    if (depths[done] > graph::kMaxNesting)
      return fail(ErrorCode::kUnsupported,
                  "The model nests its subgraphs {} deep, {} are possible.", depths[done],
                  graph::kMaxNesting);
    for (uint32_t caller : callers[done]) {
      depths[caller] = std::max(depths[caller], depths[done] + 1);
      if (--open[caller] == 0) ready.push_back(caller);
    }
  }
  return {};
}

// 0 when it is not known before the run.
uint64_t knownBytes(const graph::Operand& operand) {
  const Result<uint64_t> bytes = graph::byteSize(operand);
  return bytes ? *bytes : 0;
}

uint64_t saturatingAdd(uint64_t a, uint64_t b) {
  return a > std::numeric_limits<uint64_t>::max() - b ? std::numeric_limits<uint64_t>::max()
                                                      : a + b;
}

}  // namespace

Interpreter::Interpreter(std::shared_ptr<const graph::Model> model, InterpreterOptions options)
    : model_(std::move(model)), options_(std::move(options)) {}

Interpreter::~Interpreter() = default;

Result<std::shared_ptr<const Interpreter>> Interpreter::create(
    std::shared_ptr<const graph::Model> model, InterpreterOptions options) {
  std::shared_ptr<Interpreter> interpreter(new Interpreter(std::move(model), std::move(options)));
  HEARTH_TRY(interpreter->plan());
  return interpreter;
}

Status Interpreter::plan() {
  HEARTH_TRY(checkNesting(*model_));
  plans_.resize(model_->subgraphs.size());
  idleStates_.resize(model_->subgraphs.size());
  for (size_t g = 0; g < plans_.size(); ++g) HEARTH_TRY(planSubgraph(g));
  std::vector<uint8_t> isPlanned(plans_.size(), 0);
  HEARTH_TRY(planActivations(0, &isPlanned));
  activationBytes_ = plans_[0].activationBytes;
  return {};
}

Status Interpreter::planSubgraph(size_t index) {
  const graph::Subgraph& subgraph = model_->subgraphs[index];
  SubgraphPlan& plan = plans_[index];
  plan.constants.assign(subgraph.operands.size(), nullptr);
  plan.steps.resize(subgraph.operations.size());
  std::vector<size_t> lastUse(subgraph.operands.size(), SIZE_MAX);
  for (size_t i = 0; i < subgraph.operations.size(); ++i) {
    const graph::Operation& operation = subgraph.operations[i];
    plan.steps[i].definition = findOperation(operation.type);
    if (plan.steps[i].definition == nullptr)
      return fail(ErrorCode::kUnsupported,
                  "Operation {} of subgraph {} is {}, which has no kernel.", i, index,
                  graph::nameOf(operation.type));
    if (options_.kernels == KernelSet::kReference)
      plan.steps[i].referenceKernel = reference::findKernel(operation.type);
    for (uint32_t operand : operation.inputs) lastUse[operand] = i;
    for (uint32_t operand : operation.outputs) lastUse[operand] = i;
  }
  for (size_t k = 0; k < subgraph.operands.size(); ++k) {
    const graph::Operand& operand = subgraph.operands[k];
    if (operand.lifetime == Lifetime::kTemporary && lastUse[k] != SIZE_MAX)
      plan.steps[lastUse[k]].lastUses.push_back(static_cast<uint32_t>(k));
    if (!operand.isConstant()) continue;
    // Kernels take inputs as const.
    plan.constants[k] = const_cast<uint8_t*>(model_->constantData(operand));
    if (lastUse[k] != SIZE_MAX)
      plan.constants[k] = static_cast<uint8_t*>(
          aligned_.aligned(plan.constants[k], operand.type, operand.location.length));
  }
  return {};
}

Status Interpreter::planActivations(size_t index, std::vector<uint8_t>* isPlanned) {
  if ((*isPlanned)[index]) return {};
  (*isPlanned)[index] = 1;
  const graph::Subgraph& subgraph = model_->subgraphs[index];
  SubgraphPlan& plan = plans_[index];
  uint64_t live = 0;
  for (size_t i = 0; i < subgraph.operations.size(); ++i) {
    uint64_t nested = 0;
    for (uint32_t k : subgraph.operations[i].inputs) {
      const graph::Operand& operand = subgraph.operands[k];
      if (operand.lifetime != Lifetime::kSubgraph) continue;
      HEARTH_TRY(planActivations(operand.subgraphIndex, isPlanned));
      nested = std::max(nested, plans_[operand.subgraphIndex].activationBytes);
    }
    plan.activationBytes = std::max(plan.activationBytes, saturatingAdd(live, nested));
    for (uint32_t k : subgraph.operations[i].outputs) {
      const graph::Operand& operand = subgraph.operands[k];
      // Outputs of the main graph lie in the caller's memory.
      const bool isOurs = operand.lifetime == Lifetime::kTemporary ||
                          (index != 0 && operand.lifetime == Lifetime::kSubgraphOutput);
      if (!isOurs) continue;
      const uint64_t bytes = knownBytes(operand);
      live = saturatingAdd(live, bytes);
      if (options_.maxActivationBytes != 0 && live > options_.maxActivationBytes)
        return fail(ErrorCode::kOutOfMemory,
                    "The tensor {}, output of {}, needs {} bytes; with it the activations take {} "
                    "bytes, the limit is {}.",
                    graph::describe(operand), graph::nameOf(subgraph.operations[i].type), bytes,
                    live, options_.maxActivationBytes);
    }
    plan.activationBytes = std::max(plan.activationBytes, live);
    for (uint32_t k : plan.steps[i].lastUses) live -= knownBytes(subgraph.operands[k]);
  }
  return {};
}

std::unique_ptr<Interpreter::SubgraphState> Interpreter::takeState(size_t subgraphIndex) const {
  {
    std::lock_guard lock(mutex_);
    auto& idle = idleStates_[subgraphIndex];
    if (!idle.empty()) {
      auto state = std::move(idle.back());
      idle.pop_back();
      return state;
    }
  }
  const graph::Subgraph& subgraph = model_->subgraphs[subgraphIndex];
  const SubgraphPlan& plan = plans_[subgraphIndex];
  auto state = std::make_unique<SubgraphState>();
  state->values.resize(subgraph.operands.size());
  for (size_t k = 0; k < subgraph.operands.size(); ++k) {
    const graph::Operand& operand = subgraph.operands[k];
    if (!operand.isConstant()) continue;
    Value& value = state->values[k];
    value.isPresent = true;
    value.dimensions = operand.dimensions;
    value.data = plan.constants[k];
  }
  state->contexts.reserve(subgraph.operations.size());
  for (const graph::Operation& operation : subgraph.operations) {
    state->contexts.push_back(makeContext(*model_, subgraph, operation));
    state->contexts.back().threadPool = options_.threadPool.get();
  }
  return state;
}

void Interpreter::giveState(size_t subgraphIndex, std::unique_ptr<SubgraphState> state) const {
  constexpr size_t kMaxIdle = 16;
  const graph::Subgraph& subgraph = model_->subgraphs[subgraphIndex];
  for (size_t k = 0; k < subgraph.operands.size(); ++k)
    if (!subgraph.operands[k].isConstant()) state->values[k].forget();
  std::lock_guard lock(mutex_);
  auto& idle = idleStates_[subgraphIndex];
  if (idle.size() < kMaxIdle) idle.push_back(std::move(state));
}

}  // namespace hearth::ops
