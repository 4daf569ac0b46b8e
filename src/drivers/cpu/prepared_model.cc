// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/prepared_model.h"

#include <chrono>
#include <cstring>
#include <map>

#include "base/log.h"
#include "base/trace.h"
#include "drivers/cpu/machine.h"
#include "drivers/cpu/plan_builder.h"
#include "hal/interpreted_model.h"
#include "hal/request_check.h"
#include "ops/operation.h"

namespace hearth::cpu {
namespace {

class CpuExecution final : public hal::Execution {
 public:
  CpuExecution(std::shared_ptr<CpuPreparedModel> prepared, hal::BoundRequest request)
      : prepared_(std::move(prepared)), request_(std::move(request)) {
    const auto hasTail = [&](const void* data, uint64_t length) {
      const auto begin = reinterpret_cast<uintptr_t>(data);
      for (const memory::PoolRef& pool : request_.pools) {
        const auto base = reinterpret_cast<uintptr_t>(pool->data());
        if (pool->kind() != memory::PoolKind::kBorrowed && begin >= base &&
            begin + length <= base + pool->size())
          return true;
      }
      return false;
    };
    for (const ops::RunArgument& argument : request_.inputs)
      inputs_.push_back({argument.data, argument.length, hasTail(argument.data, argument.length)});
    for (size_t i = 0; i < request_.outputs.size(); ++i) {
      const ops::RunArgument& argument = request_.outputs[i];
      const uint64_t needed = prepared_->outputBytes()[i];
      outputs_.push_back(
          {argument.isPresent ? argument.data : nullptr, needed, hasTail(argument.data, needed)});
      isSufficient_.push_back(!argument.isPresent || argument.length >= needed);
    }
  }

  hal::ExecutionResult compute(const base::Deadline& deadline) override {
    hal::ExecutionResult result;
    if (deadline.hasPassed()) {
      result.status = fail(ErrorCode::kMissedDeadlinePersistent,
                           "The deadline passes before the computation starts.");
      return result;
    }
    bool allSufficient = true;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      result.outputShapes.push_back({prepared_->outputDimensions()[i], isSufficient_[i]});
      allSufficient &= isSufficient_[i];
    }
    if (!allSufficient) {
      result.status = fail(ErrorCode::kOutputInsufficientSize, "An output buffer is too small.");
      return result;
    }
    const auto start = std::chrono::steady_clock::now();
    result.status = prepared_->run(inputs_, outputs_, deadline);
    if (!result.status) {
      result.outputShapes.clear();
      return result;
    }
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
  std::vector<bool> isSufficient_;
};

}  // namespace

Result<std::shared_ptr<CpuPreparedModel>> CpuPreparedModel::create(
    std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
    std::shared_ptr<threads::ThreadPool> pool, std::shared_ptr<cache::SegmentStore> store) {
  base::TraceSpan span("start", "prepare");
  std::shared_ptr<CpuPreparedModel> prepared(new CpuPreparedModel());
  prepared->model_ = std::move(model);
  prepared->pool_ = std::move(pool);
  const graph::Subgraph& graph = prepared->model_->main();
  prepared->session_ = std::make_shared<WeightSession>(
      std::move(store), prepared->model_, prepared->weights_, options,
      static_cast<unsigned>(prepared->pool_->threadCount()));
  prepared->session_->load();
  // XNNPACK says no only when an operator is made: plan again with the reference kernel for those.
  std::set<uint32_t>& referenceOnly = prepared->referenceOnly_;
  while (true) {
    if (options.deadline.hasPassed())
      return fail(ErrorCode::kMissedDeadlinePersistent,
                  "The deadline passes while the model is prepared.");
    PlanBuilder builder(*prepared->model_, prepared->weights_.get(), referenceOnly);
    HEARTH_TRY(builder.build());
    prepared->outputDimensions_.clear();
    prepared->outputBytes_.clear();
    for (uint32_t index : graph.outputs) {
      prepared->outputDimensions_.push_back(builder.tensor(index).dimensions);
      prepared->outputBytes_.push_back(tensorBytes(builder.tensor(index)));
    }
    prepared->ownedConstants_ = builder.takeOwnedConstants();
    prepared->plan_ = builder.takePlan();
    HEARTH_TRY(planArena(&prepared->plan_, options.maxActivationBytes));
    std::vector<uint32_t> refused;
    auto context = ExecutionContext::create(prepared->plan_, prepared->pool_.get(),
                                            !prepared->session_->isWarm(), &refused);
    if (builder.asksForTraits()) prepared->report_.routedAround = selfTest()->routedAround;
    if (context) {
      prepared->idle_.push_back(std::move(*context));
      break;
    }
    const size_t before = referenceOnly.size();
    referenceOnly.insert(refused.begin(), refused.end());
    if (referenceOnly.size() == before) return std::unexpected(std::move(context.error()));
  }
  prepared->session_->onCorrupt([weak = std::weak_ptr(prepared)](const cache::SegmentKey& key) {
    if (const auto self = weak.lock()) self->repair(key);
  });
  prepared->session_->publish();
  prepared->report_.activationBytes = prepared->plan_.arenaBytes;
  return prepared;
}

void CpuPreparedModel::repair(const cache::SegmentKey& key) {
  const base::TraceSpan span("start", "repair packed weights");
  // The wrong places are packed as at a cold start, into memory of their own.
  PackedWeights fresh(true);
  std::map<std::shared_ptr<PackedSegment>, std::vector<WeightPlace>> wrong;
  for (const auto& [place, packed] : weights_->places()) {
    const cache::SegmentRef published = packed.segment->published();
    if (published != nullptr && published->key() == key)
      wrong[packed.segment].push_back(place);
    else
      fresh.preset(place, packed);
  }
  if (wrong.empty()) return;
  const auto packAgain = [&]() -> Status {
    PlanBuilder builder(*model_, &fresh, referenceOnly_);
    HEARTH_TRY(builder.build());
    const auto constants = builder.takeOwnedConstants();
    Plan plan = builder.takePlan();
    HEARTH_TRY(planArena(&plan, 0));
    std::vector<uint32_t> refused;
    HEARTH_TRY(ExecutionContext::create(plan, pool_.get(), true, &refused));
    const std::map<WeightPlace, PackedPlace> right = fresh.places();
    const std::map<WeightPlace, PackedPlace> used = weights_->places();
    for (const auto& [segment, places] : wrong) {
      for (const WeightPlace& place : places)
        if (!right.contains(place) || right.at(place).size != used.at(place).size)
          return fail(ErrorCode::kOpFailed, "Operation {} is packed otherwise than before.",
                      place.operation);
      HEARTH_TRY(segment->repair([&](uint8_t* bytes) {
        for (const WeightPlace& place : places)
          std::memcpy(bytes + used.at(place).offset, right.at(place).data(), right.at(place).size);
      }));
    }
    return {};
  };
  if (const Status repaired = packAgain(); !repaired) {
    base::logWarn("Wrong packed weights of a running model stay in use. {}",
                  repaired.error().toString());
    return;
  }
  std::vector<std::shared_ptr<PackedSegment>> segments;
  for (const auto& [segment, places] : wrong) segments.push_back(segment);
  session_->repaired(segments);
}

Result<std::unique_ptr<hal::Execution>> CpuPreparedModel::createExecution(hal::Request request) {
  HEARTH_ASSIGN(hal::BoundRequest bound, hal::checkRequest(model_->main(), request));
  // The plan takes every graph input for given; the interpreter knows how to do without.
  for (const ops::RunArgument& input : bound.inputs) {
    if (input.isPresent) continue;
    HEARTH_ASSIGN(std::shared_ptr<hal::PreparedModel> interpreted,
                  hal::prepareInterpreted(model_, {}, pool_, "an input is omitted"));
    return interpreted->createExecution(std::move(request));
  }
  return std::make_unique<CpuExecution>(shared_from_this(), std::move(bound));
}

hal::StartReport CpuPreparedModel::startReport() const {
  hal::StartReport report = report_;
  session_->describe(&report);
  return report;
}

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
    HEARTH_ASSIGN(context, ExecutionContext::create(plan_, pool_.get(), false, &refused));
  }
  Status status = context->run(inputs, outputs, pool_.get(), deadline);
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(context));
  return status;
}

}  // namespace hearth::cpu
