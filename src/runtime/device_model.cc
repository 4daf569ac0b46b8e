// SPDX-License-Identifier: Apache-2.0
#include "runtime/device_model.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace hearth::runtime {
namespace {

Error asExecutionFailure(Error error) {
  switch (error.code()) {
    case ErrorCode::kIncomplete:
    case ErrorCode::kUnexpectedNull:
    case ErrorCode::kBadData:
    case ErrorCode::kBadState:
    case ErrorCode::kOutputInsufficientSize:
    case ErrorCode::kNotFound:
    case ErrorCode::kIo:
    case ErrorCode::kUnsupported:
      return Error(ErrorCode::kOpFailed, error.toString());
    default:
      return error;
  }
}

// Whether `dimensions` agree with `known`, where an axis of 0 and a rank of 0 mean unknown.
bool fits(const graph::Dimensions& dimensions, const graph::Dimensions& known) {
  if (known.empty()) return true;
  return std::equal(known.begin(), known.end(), dimensions.begin(), dimensions.end(),
                    [](uint32_t axis, uint32_t found) { return axis == 0 || axis == found; });
}

class DeviceModel final : public hal::PreparedModel,
                          public std::enable_shared_from_this<DeviceModel> {
 public:
  DeviceModel(std::shared_ptr<hal::PreparedModel> prepared,
              std::shared_ptr<const graph::Model> model, std::string device)
      : prepared_(std::move(prepared)), model_(std::move(model)), device_(std::move(device)) {}

  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override;
  bool hasFences() const override { return prepared_->hasFences(); }
  hal::StartReport startReport() const override { return prepared_->startReport(); }
  hal::StartReport startReportSoFar() const override { return prepared_->startReportSoFar(); }

  const std::string& device() const { return device_; }
  // kOpFailed when the device's result contradicts the model or itself. `given` holds the request's
  // dimensions of each output.
  Status check(const hal::ExecutionResult& result,
               const std::vector<graph::Dimensions>& given) const {
    const graph::Subgraph& main = model_->main();
    const hal::OutputShapes& shapes = result.outputShapes;
    if (shapes.size() != main.outputs.size())
      return fail(ErrorCode::kOpFailed, "{} gives {} shapes for {} outputs.", device_,
                  shapes.size(), main.outputs.size());
    for (size_t i = 0; i < shapes.size(); ++i) {
      const graph::Operand& operand = main.operands[main.outputs[i]];
      if (!fits(shapes[i].dimensions, operand.dimensions) || !fits(shapes[i].dimensions, given[i]))
        return fail(ErrorCode::kOpFailed,
                    "{} gives output {} the shape {}; the model has {}, the request {}.", device_,
                    i, graph::describeDimensions(shapes[i].dimensions), graph::describe(operand),
                    graph::describeDimensions(given[i]));
    }
    const bool allAreSufficient = std::ranges::all_of(shapes, &hal::OutputShape::isSufficient);
    if (allAreSufficient != result.status.has_value())
      return fail(ErrorCode::kOpFailed, "{} contradicts itself on whether its outputs fit.",
                  device_);
    return {};
  }

 private:
  const std::shared_ptr<hal::PreparedModel> prepared_;
  const std::shared_ptr<const graph::Model> model_;
  const std::string device_;
};

class DeviceExecution final : public hal::Execution {
 public:
  DeviceExecution(std::shared_ptr<const DeviceModel> model,
                  std::unique_ptr<hal::Execution> execution, std::vector<graph::Dimensions> given)
      : model_(std::move(model)), execution_(std::move(execution)), given_(std::move(given)) {}

  hal::ExecutionResult compute(const base::Deadline& deadline) override {
    hal::ExecutionResult result = execution_->compute(deadline);
    if (!isOfKnownShapes(result)) check(result);
    return result;
  }
  Result<base::Descriptor> startFenced(std::vector<base::Descriptor> fences,
                                       const base::Deadline& deadline) override {
    auto fence = execution_->startFenced(std::move(fences), deadline);
    if (fence && !fence->valid())
      return fail(ErrorCode::kOpFailed, "{} gives no fence.", model_->device());
    return fence;
  }
  hal::ExecutionResult finishFenced() override {
    hal::ExecutionResult result = execution_->finishFenced();
    if (!isOfKnownShapes(result)) check(result);
    return result;
  }

 private:
  // Whether a computation has succeeded with the shapes that were checked last.
  bool isOfKnownShapes(const hal::ExecutionResult& result) const {
    return result.status && !result.outputShapes.empty() && result.outputShapes.isCopyOf(checked_);
  }
  // Makes a failure of what contradicts the model or itself.
  void check(hal::ExecutionResult& result) {
    const bool hasShapes =
        result.status || result.status.error().code() == ErrorCode::kOutputInsufficientSize;
    if (hasShapes) {
      Status checked = model_->check(result, given_);
      if (checked) {
        if (result.status) checked_ = result.outputShapes;
        return;
      }
      result.status = std::move(checked);
    }
    result.status = std::unexpected(asExecutionFailure(std::move(result.status.error())));
    result.outputShapes.clear();
  }

  const std::shared_ptr<const DeviceModel> model_;
  const std::unique_ptr<hal::Execution> execution_;
  const std::vector<graph::Dimensions> given_;
  hal::OutputShapes checked_;  // of the last computation that gave others than the one before
};

Result<std::unique_ptr<hal::Execution>> DeviceModel::createExecution(hal::Request request) {
  std::vector<graph::Dimensions> given(model_->main().outputs.size());
  for (size_t i = 0; i < given.size() && i < request.outputs.size(); ++i)
    given[i] = request.outputs[i].dimensions;
  auto execution = prepared_->createExecution(std::move(request));
  if (!execution) return std::unexpected(asExecutionFailure(std::move(execution.error())));
  if (*execution == nullptr) return fail(ErrorCode::kOpFailed, "{} gives no execution.", device_);
  return std::make_unique<DeviceExecution>(shared_from_this(), std::move(*execution),
                                           std::move(given));
}

}  // namespace

std::shared_ptr<hal::PreparedModel> asDeviceModel(std::shared_ptr<hal::PreparedModel> prepared,
                                                  std::shared_ptr<const graph::Model> model,
                                                  std::string device) {
  return std::make_shared<DeviceModel>(std::move(prepared), std::move(model), std::move(device));
}

}  // namespace hearth::runtime
