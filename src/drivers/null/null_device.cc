// SPDX-License-Identifier: Apache-2.0
#include "null_device.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "hal/preparation_check.h"
#include "hal/request_check.h"

namespace hearth::drivers::null {
namespace {

class NullExecution final : public hal::Execution {
 public:
  explicit NullExecution(hal::BoundRequest request) : request_(std::move(request)) {}

  hal::ExecutionResult compute(const base::Deadline& deadline) override {
    hal::ExecutionResult result;
    if (deadline.hasPassed())
      result.status = fail(ErrorCode::kMissedDeadlineTransient, "The deadline has passed.");
    else
      result.status = fail(ErrorCode::kUnsupported, "The device null computes nothing.");
    return result;
  }

 private:
  hal::BoundRequest request_;
};

class NullPreparedModel final : public hal::PreparedModel {
 public:
  explicit NullPreparedModel(std::shared_ptr<const graph::Model> model)
      : model_(std::move(model)) {}

  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override {
    HEARTH_ASSIGN(hal::BoundRequest bound, hal::checkRequest(model_->main(), request));
    return std::make_unique<NullExecution>(std::move(bound));
  }

  hal::StartReport startReport() const override { return {}; }

 private:
  std::shared_ptr<const graph::Model> model_;
};

class NullDevice final : public hal::Device {
 public:
  std::string name() const override { return "null"; }
  std::string version() const override { return "1"; }
  hal::DeviceType type() const override { return hal::DeviceType::kOther; }
  int64_t featureLevel() const override { return 1000007; }

  hal::Capabilities capabilities() const override {
    hal::Capabilities capabilities;
    for (const graph::OperandTypeInfo& info : graph::operandTypes())
      capabilities.operandPerformance[info.type] = {1.0f, 1.0f};
    return capabilities;
  }

  Result<std::vector<hal::OperationSupport>> supportedOperations(
      const graph::Model& model) override {
    HEARTH_TRY(hal::checkPoolsMapped(model));
    HEARTH_TRY(graph::validate(model));
    std::vector<hal::OperationSupport> supports;
    for (const graph::Operation& operation : model.main().operations)
      supports.push_back({false, "",
                          base::formatText("The device null has no kernel for {}.",
                                           graph::nameOf(operation.type))});
    return supports;
  }

  Result<std::shared_ptr<hal::PreparedModel>> prepareModel(
      std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
      hal::Cache /*cache*/) override {
    HEARTH_TRY(hal::checkPreparation(model.get(), options));
    HEARTH_ASSIGN(const std::vector<hal::OperationSupport> supports, supportedOperations(*model));
    for (const hal::OperationSupport& support : supports)
      if (!support.supported) return fail(ErrorCode::kUnsupported, "{}", support.reason);
    return std::make_shared<NullPreparedModel>(std::move(model));
  }
};

}  // namespace

std::unique_ptr<hal::Device> createDevice() {
  return std::make_unique<NullDevice>();
}

}  // namespace hearth::drivers::null
