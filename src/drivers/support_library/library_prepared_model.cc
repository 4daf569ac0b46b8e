// SPDX-License-Identifier: Apache-2.0
#include "drivers/support_library/library_prepared_model.h"

#include <utility>
#include <vector>

#include "drivers/support_library/library_execution.h"
#include "hal/request_check.h"
#include "ops/specialized_model.h"

namespace hearth::drivers::support_library {

Status checkActivations(const graph::Model& model, uint64_t limit) {
  if (limit == 0) return {};
  for (const graph::Operand& operand : model.main().operands) {
    if (operand.lifetime != graph::Lifetime::kTemporary || !graph::isFullySpecified(operand))
      continue;
    HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(operand));
    if (bytes > limit)
      return fail(ErrorCode::kOutOfMemory,
                  "The tensor {} ({}) has {} bytes; the limit of intermediate results is {}.",
                  operand.name, graph::describe(operand), bytes, limit);
  }
  return {};
}

Result<DeviceArguments> LibraryPreparedModel::takeDeviceArguments(hal::Request* request) const {
  DeviceArguments taken;
  for (const bool isInput : {true, false}) {
    auto& memories = isInput ? taken.inputs : taken.outputs;
    for (hal::Argument& argument : isInput ? request->inputs : request->outputs) {
      memories.emplace_back();
      if (argument.kind != hal::Argument::Kind::kBuffer) continue;
      memories.back() = memories_->find(argument.token);
      if (memories.back() == nullptr)
        return fail(ErrorCode::kBadData, "The buffer token {} of {} {} is unknown.", argument.token,
                    isInput ? "input" : "output", memories.size() - 1);
      argument.kind = hal::Argument::Kind::kNoValue;
    }
  }
  return taken;
}

Result<std::unique_ptr<hal::Execution>> LibraryPreparedModel::createExecution(
    hal::Request request) {
  const graph::Model& source = model_->source();
  HEARTH_ASSIGN(DeviceArguments memories, takeDeviceArguments(&request));
  HEARTH_ASSIGN(hal::BoundRequest bound, hal::checkRequest(source.main(), request));
  if (maxActivationBytes_ != 0 && ops::hasUnknownInputs(source)) {
    std::vector<graph::Dimensions> inputs;
    for (const ops::RunArgument& input : bound.inputs) inputs.push_back(input.dimensions);
    // Shapes that cannot be told before the computation are left to the library.
    if (const auto known = ops::specializePartly(source, inputs))
      HEARTH_TRY(checkActivations(*known->model, maxActivationBytes_));
  }
  HEARTH_ASSIGN(auto execution, LibraryExecution::make(shared_from_this(), request,
                                                       std::move(bound), std::move(memories)));
  return execution;
}

hal::StartReport LibraryPreparedModel::startReport() const {
  hal::StartReport report;
  report.reason = "The support library does not say what it packs or keeps.";
  report.cacheProblem = cacheProblem_;
  return report;
}

}  // namespace hearth::drivers::support_library
