// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/prepared_model.h"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>

#include "base/trace.h"
#include "drivers/cpu/plan_builder.h"
#include "ops/operation.h"

namespace hearth::cpu {
namespace {

// A constant of less than this is not worth a system call.
constexpr uint64_t kReleaseBytes = 64 << 10;

class CpuExecution final : public hal::Execution {
 public:
  CpuExecution(std::shared_ptr<CpuPreparedModel> prepared, hal::Request request)
      : prepared_(std::move(prepared)), request_(std::move(request)) {}

  // Resolves arguments to memory; kBadData for anything that does not fit the model.
  Status bind() {
    const graph::Subgraph& graph = prepared_->model().main();
    if (request_.inputs.size() != graph.inputs.size() ||
        request_.outputs.size() != graph.outputs.size())
      return fail(ErrorCode::kBadData,
                  "The request has {} inputs and {} outputs, the model {} and {}.",
                  request_.inputs.size(), request_.outputs.size(), graph.inputs.size(),
                  graph.outputs.size());
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      const graph::Operand& operand = graph.operands[graph.inputs[i]];
      HEARTH_TRY_CONTEXT(bindOne(request_.inputs[i], operand, operand.dimensions, false, &inputs_),
                         "while binding input {}", i);
    }
    for (size_t i = 0; i < graph.outputs.size(); ++i)
      HEARTH_TRY_CONTEXT(bindOne(request_.outputs[i], graph.operands[graph.outputs[i]],
                                 prepared_->outputDimensions()[i], true, &outputs_),
                         "while binding output {}", i);
    return {};
  }

  hal::ExecutionResult compute(const base::Deadline& deadline) override {
    hal::ExecutionResult result;
    for (size_t i = 0; i < outputs_.size(); ++i)
      result.outputShapes.push_back({prepared_->outputDimensions()[i], sufficient_[i]});
    for (bool isSufficient : sufficient_) {
      if (isSufficient) continue;
      result.status = fail(ErrorCode::kOutputInsufficientSize, "An output buffer is too small.");
      return result;
    }
    if (deadline.hasPassed()) {
      result.status = fail(ErrorCode::kMissedDeadlinePersistent,
                           "The deadline passes before the computation starts.");
      result.outputShapes.clear();
      return result;
    }
    const auto start = std::chrono::steady_clock::now();
    result.status = prepared_->run(inputs_, outputs_, deadline);
    if (!result.status) {
      result.outputShapes.clear();
      return result;
    }
    result.timing.inDriver = static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                             start)
            .count());
    result.timing.onDevice = result.timing.inDriver;
    return result;
  }

 private:
  Status bindOne(const hal::Argument& argument, const graph::Operand& operand,
                 const graph::Dimensions& dimensions, bool isOutput,
                 std::vector<ExecutionContext::Buffer>* buffers) {
    graph::Operand sized = operand;
    sized.dimensions = dimensions;
    HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(sized));
    if (!argument.dimensions.empty() && argument.dimensions != dimensions && !isOutput)
      return fail(ErrorCode::kBadData, "The argument has dimensions {}, {} has {}.",
                  graph::describeDimensions(argument.dimensions), graph::describe(operand),
                  graph::describeDimensions(dimensions));
    // An output whose shape the model leaves open may have more or less room than it needs.
    const bool isOpen = isOutput && !graph::isFullySpecified(operand);
    ExecutionContext::Buffer buffer;
    buffer.bytes = bytes;
    switch (argument.kind) {
      case hal::Argument::Kind::kPointer:
        if (argument.pointer == nullptr)
          return fail(ErrorCode::kBadData, "The argument for {} has no memory.",
                      graph::describe(operand));
        buffer.data = argument.pointer;
        break;
      case hal::Argument::Kind::kPool:
        if (argument.pool == nullptr || !argument.pool->contains(argument.offset, argument.length))
          return fail(ErrorCode::kBadData, "The range {}+{} lies outside its memory pool.",
                      argument.offset, argument.length);
        if (isOutput && !argument.pool->writable())
          return fail(ErrorCode::kBadData, "The memory for {} is read-only.",
                      graph::describe(operand));
        buffer.data = const_cast<uint8_t*>(argument.pool->data()) + argument.offset;
        buffer.hasReadableTail = argument.pool->kind() != memory::PoolKind::kBorrowed;
        break;
      default:
        return fail(ErrorCode::kBadData, "The argument for {} is omitted.",
                    graph::describe(operand));
    }
    if (isOpen ? false : argument.length != bytes)
      return fail(ErrorCode::kBadData, "The argument for {} has {} bytes, {} are needed.",
                  graph::describe(operand), argument.length, bytes);
    if (isOutput) sufficient_.push_back(argument.length >= bytes);
    buffers->push_back(buffer);
    return {};
  }

  std::shared_ptr<CpuPreparedModel> prepared_;
  hal::Request request_;
  std::vector<ExecutionContext::Buffer> inputs_;
  std::vector<ExecutionContext::Buffer> outputs_;
  std::vector<bool> sufficient_;
};

}  // namespace

Result<std::shared_ptr<CpuPreparedModel>> CpuPreparedModel::create(
    std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
    const SelfTestResult& selfTest, std::shared_ptr<threads::ThreadPool> pool) {
  base::TraceSpan span("start", "prepare");
  std::shared_ptr<CpuPreparedModel> prepared(new CpuPreparedModel());
  prepared->model_ = std::move(model);
  prepared->pool_ = std::move(pool);
  const graph::Subgraph& graph = prepared->model_->main();
  // XNNPACK says no only when an operator is made: plan again with the reference kernel for those.
  std::set<uint32_t> referenceOnly;
  while (true) {
    if (options.deadline.hasPassed())
      return fail(ErrorCode::kMissedDeadlinePersistent,
                  "The deadline passes while the model is prepared.");
    PlanBuilder builder(*prepared->model_, selfTest.traits, &prepared->weights_, referenceOnly);
    HEARTH_TRY(builder.build());
    prepared->outputDimensions_.clear();
    for (uint32_t index : graph.outputs)
      prepared->outputDimensions_.push_back(builder.tensor(index).dimensions);
    prepared->ownedConstants_ = builder.takeOwnedConstants();
    prepared->plan_ = builder.takePlan();
    HEARTH_TRY(planArena(&prepared->plan_, options.maxActivationBytes));
    std::vector<uint32_t> refused;
    auto context =
        ExecutionContext::create(prepared->plan_, prepared->pool_.get(), &refused);
    if (context) {
      prepared->idle_.push_back(std::move(*context));
      break;
    }
    const size_t before = referenceOnly.size();
    referenceOnly.insert(refused.begin(), refused.end());
    if (referenceOnly.size() == before) return std::unexpected(std::move(context.error()));
  }
  releasePackedSources(*prepared->model_);
  prepared->report_.state = hal::StartReport::State::kUncached;
  prepared->report_.reason = "no weight store";
  prepared->report_.packedBytes = prepared->weights_.packedBytes();
  prepared->report_.activationBytes = prepared->plan_.arenaBytes;
  prepared->report_.routedAround = selfTest.routedAround;
  return prepared;
}

Result<std::unique_ptr<hal::Execution>> CpuPreparedModel::createExecution(hal::Request request) {
  auto execution = std::make_unique<CpuExecution>(shared_from_this(), std::move(request));
  HEARTH_TRY(execution->bind());
  return execution;
}

hal::StartReport CpuPreparedModel::startReport() const { return report_; }

Status CpuPreparedModel::run(std::span<const ExecutionContext::Buffer> inputs,
                             std::span<const ExecutionContext::Buffer> outputs,
                             const base::Deadline& deadline) {
  std::unique_ptr<ExecutionContext> context;
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      context = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (context == nullptr) {
    std::vector<uint32_t> refused;
    HEARTH_ASSIGN(context, ExecutionContext::create(plan_, pool_.get(), &refused));
  }
  Status status = context->run(inputs, outputs, pool_.get(), deadline);
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(context));
  return status;
}

void releasePackedSources(const graph::Model& model) {
  static const uintptr_t page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (const graph::Subgraph& subgraph : model.subgraphs) {
    for (const graph::Operand& operand : subgraph.operands) {
      if (operand.lifetime != graph::Lifetime::kConstantReference) continue;
      if (operand.location.length < kReleaseBytes) continue;
      const memory::Pool& pool = *model.pools[operand.location.pool];
      if (pool.kind() != memory::PoolKind::kMmapFd || pool.writable()) continue;
      const auto begin = reinterpret_cast<uintptr_t>(pool.data()) + operand.location.offset;
      const uintptr_t first = (begin + page - 1) / page * page;
      const uintptr_t last = (begin + operand.location.length) / page * page;
      if (last > first) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
    }
  }
}

}  // namespace hearth::cpu
