// SPDX-License-Identifier: Apache-2.0
#include "runtime/model_sequence.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/trace.h"
#include "memory/pool.h"
#include "runtime/overwritten_inputs.h"
#include "runtime/pool_layout.h"

namespace hearth::runtime {
namespace {

constexpr uint64_t kFirstGrowingBytes = 4096;

// Where an operand of the main subgraph lies during an execution.
struct Place {
  std::optional<uint32_t> argument;  // position among the inputs or outputs of the model
  bool isOutput = false;
  // In the shared memory. An output that a later step reads has a place there, too, in case the
  // client omits it.
  std::optional<uint64_t> offset;
  uint64_t length = 0;
  size_t writer = 0;      // the step that writes it
  size_t lastReader = 0;  // the last step that reads it
  // Of unknown size, and read by a later step: each execution has memory for it that grows.
  bool isGrowing = false;
};

// A tensor of unknown size between two steps, during an execution.
struct GrowingTensor {
  memory::PoolRef pool;
  graph::Dimensions dimensions;  // of the last run
  bool isSufficient = true;
};

// In bytes. A shape that a run computed is complete; a zero in it is a dimension of 0.
uint64_t byteSizeOf(const graph::Operand& operand, const graph::Dimensions& dimensions) {
  uint64_t elements = 1;
  for (const uint32_t dimension : dimensions) elements *= dimension;
  if (operand.type == graph::OperandType::kTensorInt4) return (elements + 1) / 2;
  return elements * graph::elementSize(operand);
}

class ModelSequence final : public hal::PreparedModel,
                            public std::enable_shared_from_this<ModelSequence> {
 public:
  static Result<std::shared_ptr<ModelSequence>> create(std::shared_ptr<const graph::Model> whole,
                                                       std::vector<SequenceStep> steps) {
    std::shared_ptr<ModelSequence> sequence(new ModelSequence());
    sequence->whole_ = std::move(whole);
    sequence->steps_ = std::move(steps);
    HEARTH_TRY(sequence->placeOperands());
    return sequence;
  }

  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override;

  hal::StartReport startReport() const override { return sumOf(&hal::PreparedModel::startReport); }
  hal::StartReport startReportSoFar() const override {
    return sumOf(&hal::PreparedModel::startReportSoFar);
  }

  hal::StartReport sumOf(hal::StartReport (hal::PreparedModel::*reportOf)() const) const {
    hal::StartReport sum;
    sum.state = hal::StartReport::State::kWarm;
    sum.activationBytes = sharedBytes_;
    for (const SequenceStep& step : steps_) {
      const hal::StartReport report = (*step.prepared.*reportOf)();
      // The whole has the worst state of its steps.
      if (report.state != hal::StartReport::State::kWarm &&
          sum.state != hal::StartReport::State::kUncached) {
        sum.state = report.state;
        sum.reason = report.reason;
      }
      if (sum.cacheProblem.empty()) sum.cacheProblem = report.cacheProblem;
      for (const auto& [kind, bytes] : report.packedBytes) sum.packedBytes[kind] += bytes;
      sum.mappedBytes += report.mappedBytes;
      sum.activationBytes += report.activationBytes;
      sum.shapes = std::max(sum.shapes, report.shapes);
      sum.routedAround.insert(sum.routedAround.end(), report.routedAround.begin(),
                              report.routedAround.end());
      sum.slowOperations.insert(sum.slowOperations.end(), report.slowOperations.begin(),
                                report.slowOperations.end());
    }
    return sum;
  }

  const graph::Subgraph& main() const { return whole_->main(); }
  const std::vector<SequenceStep>& steps() const { return steps_; }
  const Place& place(uint32_t operand) const { return places_[operand]; }
  uint64_t sharedBytes() const { return sharedBytes_; }

 private:
  ModelSequence() = default;

  Status placeOperands() {
    const graph::Subgraph& main = whole_->main();
    places_.resize(main.operands.size());
    for (uint32_t i = 0; i < main.inputs.size(); ++i) places_[main.inputs[i]].argument = i;
    for (uint32_t i = 0; i < main.outputs.size(); ++i) {
      places_[main.outputs[i]].argument = i;
      places_[main.outputs[i]].isOutput = true;
    }
    for (size_t s = 0; s < steps_.size(); ++s) {
      for (const uint32_t index : steps_[s].outputs) places_[index].writer = s;
      for (const uint32_t index : steps_[s].inputs) {
        places_[index].lastReader = s;
        const graph::Operand& operand = main.operands[index];
        Place& place = places_[index];
        if (operand.lifetime == graph::Lifetime::kSubgraphInput || place.offset) continue;
        if (!graph::isFullySpecified(operand)) {
          place.isGrowing = true;
          continue;
        }
        HEARTH_ASSIGN(place.length, graph::byteSize(operand));
        place.offset = placeInPool(place.length, &sharedBytes_);
      }
    }
    return {};
  }

  std::shared_ptr<const graph::Model> whole_;
  std::vector<SequenceStep> steps_;
  std::vector<Place> places_;  // by operand of the main subgraph
  uint64_t sharedBytes_ = 0;
};

class SequenceExecution final : public hal::Execution {
 public:
  SequenceExecution(std::shared_ptr<const ModelSequence> model, hal::Request request,
                    OverwrittenInputs overwritten, memory::PoolRef shared)
      : model_(std::move(model)),
        request_(std::move(request)),
        overwritten_(std::move(overwritten)),
        shared_(std::move(shared)),
        bound_(model_->steps().size()) {
    for (const uint32_t index : model_->main().outputs)
      shapes_.push_back({model_->main().operands[index].dimensions, true});
  }

  hal::ExecutionResult compute(const base::Deadline& deadline) override {
    // The previous computation may have ended with an exception and left its spare memory.
    dropSpare();
    hal::ExecutionResult result = computeSteps(deadline);
    dropSpare();
    return result;
  }

 private:
  hal::ExecutionResult computeSteps(const base::Deadline& deadline) {
    hal::ExecutionResult result;
    hal::Timing sum{0, 0};
    result.copiedBytes = overwritten_.copy();
    for (size_t i = 0; i < model_->steps().size(); ++i) {
      hal::ExecutionResult part = runStep(i, deadline);
      result.copiedBytes += part.copiedBytes;
      keepShapes(i, part);
      if (isTooSmall(part)) {
        const size_t spares = spare_.size();
        Status tooSmall = std::move(part.status);
        part.status = makeRoom(i);
        if (spare_.size() != spares) result.status = std::move(tooSmall);
        if (part.status) {
          part = runStep(i, deadline);
          result.copiedBytes += part.copiedBytes;
        }
        if (isTooSmall(part))
          part.status = fail(ErrorCode::kOpFailed, "The size of an output changes.");
      }
      if (!part.status) {
        result.status = std::unexpected(
            std::move(part.status.error()).addContext(base::formatText("in step {}", i)));
        return result;
      }
      addTime(part.timing.onDevice, &sum.onDevice);
      addTime(part.timing.inDriver, &sum.inDriver);
    }
    result.outputShapes = shapes_;
    for (const auto& [argument, pool] : spare_)
      result.outputShapes.change()[argument].isSufficient = false;
    if (result.status) result.timing = sum;
    return result;
  }

  static bool isTooSmall(const hal::ExecutionResult& result) {
    return !result.status && result.status.error().code() == ErrorCode::kOutputInsufficientSize;
  }

  void dropSpare() {
    if (spare_.empty()) return;
    spare_.clear();
    for (auto& bound : bound_) bound.reset();
  }

  // Allocates memory for the outputs of a step whose buffers are too small: for the client's, so
  // that later steps can run and tell their shapes, too.
  Status makeRoom(size_t index) {
    for (const uint32_t output : model_->steps()[index].outputs) {
      const auto growing = growing_.find(output);
      if (growing != growing_.end() && !growing->second.isSufficient) {
        HEARTH_ASSIGN(growing->second.pool, roomFor(output, growing->second.dimensions));
        continue;
      }
      const Place& place = model_->place(output);
      if (!place.argument || shapes_[*place.argument].isSufficient) continue;
      HEARTH_ASSIGN(spare_[*place.argument], roomFor(output, shapes_[*place.argument].dimensions));
    }
    bound_[index].reset();
    return {};
  }

  Result<memory::PoolRef> roomFor(uint32_t operand, const graph::Dimensions& dimensions) const {
    graph::Operand sized = model_->main().operands[operand];
    sized.dimensions = dimensions;
    HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(sized));
    return memory::Pool::anonymous(bytes);
  }

  static void addTime(uint64_t part, uint64_t* sum) {
    if (part == UINT64_MAX || *sum == UINT64_MAX)
      *sum = UINT64_MAX;
    else
      *sum += part;
  }

  hal::ExecutionResult runStep(size_t index, const base::Deadline& deadline) {
    hal::ExecutionResult result;
    const base::TraceSpan span("runtime", model_->steps()[index].name);
    if (bound_[index] == nullptr || readsComputedShape(index)) {
      auto request = bind(model_->steps()[index]);
      if (!request) {
        result.status = std::unexpected(std::move(request.error()));
        return result;
      }
      auto execution = model_->steps()[index].prepared->createExecution(std::move(*request));
      if (!execution) {
        result.status = std::unexpected(std::move(execution.error()));
        return result;
      }
      bound_[index] = std::move(*execution);
    }
    return bound_[index]->compute(deadline);
  }

  // Whether each run computes the shape of an input of the step anew.
  bool readsComputedShape(size_t index) const {
    return std::ranges::any_of(model_->steps()[index].inputs,
                               [&](uint32_t input) { return model_->place(input).isGrowing; });
  }

  hal::Argument sharedArgument(const Place& place) const {
    hal::Argument argument;
    argument.kind = hal::Argument::Kind::kPool;
    argument.pool = shared_;
    argument.offset = *place.offset;
    argument.length = place.length;
    return argument;
  }

  // Whether the tensor lies between steps only: it is no argument, or an output that the client
  // omits.
  bool isInternal(const Place& place) const {
    return !place.argument || (place.isOutput && request_.outputs[*place.argument].kind ==
                                                     hal::Argument::Kind::kNoValue);
  }

  Result<hal::Argument> inputArgument(uint32_t index) const {
    const Place& place = model_->place(index);
    if (isInternal(place) && place.offset) return sharedArgument(place);
    if (place.argument && !place.isOutput) return request_.inputs[*place.argument];
    const graph::Operand& operand = model_->main().operands[index];
    hal::Argument argument;
    graph::Dimensions dimensions;
    if (isInternal(place)) {
      const GrowingTensor& tensor = growing_.at(index);
      argument.kind = hal::Argument::Kind::kPool;
      argument.pool = tensor.pool;
      dimensions = tensor.dimensions;
    } else {
      argument = clientOutput(*place.argument);
      dimensions = shapes_[*place.argument].dimensions;
    }
    if (argument.kind != hal::Argument::Kind::kBuffer)
      argument.length = byteSizeOf(operand, dimensions);
    if (!graph::isScalar(operand.type)) argument.dimensions = std::move(dimensions);
    return argument;
  }

  Result<hal::Argument> outputArgument(uint32_t index) {
    const Place& place = model_->place(index);
    if (!isInternal(place)) return clientOutput(*place.argument);
    if (place.offset) return sharedArgument(place);
    if (!place.isGrowing) return clientOutput(*place.argument);
    memory::PoolRef& pool = growing_[index].pool;
    if (pool == nullptr) {
      HEARTH_ASSIGN(pool, memory::Pool::anonymous(kFirstGrowingBytes));
    }
    hal::Argument argument;
    argument.kind = hal::Argument::Kind::kPool;
    argument.pool = pool;
    argument.length = pool->size();
    return argument;
  }

  // The client's memory for an output of the model, or the spare memory in its place.
  hal::Argument clientOutput(uint32_t index) const {
    hal::Argument argument = request_.outputs[index];
    const auto spare = spare_.find(index);
    if (spare == spare_.end()) return argument;
    argument.kind = hal::Argument::Kind::kPool;
    argument.pool = spare->second;
    argument.offset = 0;
    argument.length = spare->second->size();
    return argument;
  }

  Result<hal::Request> bind(const SequenceStep& step) {
    hal::Request request;
    request.loopTimeout = request_.loopTimeout;
    for (const uint32_t operand : step.inputs) {
      HEARTH_ASSIGN(hal::Argument argument, inputArgument(operand));
      request.inputs.push_back(std::move(argument));
    }
    for (const uint32_t operand : step.outputs) {
      HEARTH_ASSIGN(hal::Argument argument, outputArgument(operand));
      request.outputs.push_back(std::move(argument));
    }
    return request;
  }

  void keepShapes(size_t index, const hal::ExecutionResult& part) {
    const std::vector<uint32_t>& outputs = model_->steps()[index].outputs;
    for (size_t i = 0; i < outputs.size() && i < part.outputShapes.size(); ++i) {
      const Place& place = model_->place(outputs[i]);
      const hal::OutputShape& shape = part.outputShapes[i];
      if (place.argument) shapes_[*place.argument] = shape;
      if (const auto it = growing_.find(outputs[i]); it != growing_.end()) {
        it->second.dimensions = shape.dimensions;
        it->second.isSufficient = shape.isSufficient;
      }
    }
  }

  std::shared_ptr<const ModelSequence> model_;
  const hal::Request request_;
  const OverwrittenInputs overwritten_;
  const memory::PoolRef shared_;
  std::vector<std::unique_ptr<hal::Execution>> bound_;  // by step
  std::vector<hal::OutputShape> shapes_;                // by output of the model
  std::map<uint32_t, GrowingTensor> growing_;           // by operand; those without other memory
  std::map<uint32_t, memory::PoolRef> spare_;           // by output; during one computation
};

Result<std::unique_ptr<hal::Execution>> ModelSequence::createExecution(hal::Request request) {
  if (request.inputs.size() != main().inputs.size() ||
      request.outputs.size() != main().outputs.size())
    return fail(
        ErrorCode::kBadData, "The request has {} inputs and {} outputs, the model has {} and {}.",
        request.inputs.size(), request.outputs.size(), main().inputs.size(), main().outputs.size());
  const auto isReadLater = [this](size_t input, size_t output) {
    return places_[main().outputs[output]].writer < places_[main().inputs[input]].lastReader;
  };
  HEARTH_ASSIGN(OverwrittenInputs overwritten, OverwrittenInputs::take(&request, isReadLater));
  memory::PoolRef shared;
  if (sharedBytes_ != 0) {
    HEARTH_ASSIGN(shared, memory::Pool::anonymous(sharedBytes_));
  }
  return std::make_unique<SequenceExecution>(shared_from_this(), std::move(request),
                                             std::move(overwritten), std::move(shared));
}

}  // namespace

Result<std::shared_ptr<hal::PreparedModel>> makeModelSequence(
    std::shared_ptr<const graph::Model> whole, std::vector<SequenceStep> steps) {
  HEARTH_ASSIGN(std::shared_ptr<hal::PreparedModel> sequence,
                ModelSequence::create(std::move(whole), std::move(steps)));
  return sequence;
}

}  // namespace hearth::runtime
