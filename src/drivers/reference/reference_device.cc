// SPDX-License-Identifier: Apache-2.0
#include "drivers/reference/reference_device.h"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "hal/request_check.h"
#include "ops/interpreter.h"
#include "ops/operation.h"

namespace hearth::drivers::reference {
namespace {

constexpr int64_t kFeatureLevel = 1000007;

class ReferenceExecution final : public hal::Execution {
 public:
  ReferenceExecution(std::shared_ptr<const ops::Interpreter> interpreter, hal::BoundRequest request)
      : interpreter_(std::move(interpreter)), request_(std::move(request)) {}

  hal::ExecutionResult compute(const base::Deadline& deadline) override {
    const auto start = std::chrono::steady_clock::now();
    ops::RunOptions options;
    options.deadline = deadline;
    options.loopTimeoutNanoseconds = request_.loopTimeout;
    ops::RunResult run = interpreter_->run(request_.inputs, request_.outputs, options);
    hal::ExecutionResult result;
    result.status = std::move(run.status);
    for (ops::RunOutputShape& shape : run.outputShapes)
      result.outputShapes.push_back({std::move(shape.dimensions), shape.isSufficient});
    if (result.status) {
      const auto elapsed = std::chrono::steady_clock::now() - start;
      result.timing.onDevice = result.timing.inDriver = static_cast<uint64_t>(
          std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count());
    }
    return result;
  }

 private:
  std::shared_ptr<const ops::Interpreter> interpreter_;
  hal::BoundRequest request_;
};

class ReferencePreparedModel final : public hal::PreparedModel {
 public:
  ReferencePreparedModel(std::shared_ptr<const graph::Model> model,
                         std::shared_ptr<const ops::Interpreter> interpreter)
      : model_(std::move(model)), interpreter_(std::move(interpreter)) {}

  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override {
    HEARTH_ASSIGN(hal::BoundRequest bound, hal::checkRequest(model_->main(), request));
    return std::make_unique<ReferenceExecution>(interpreter_, std::move(bound));
  }

  hal::StartReport startReport() const override {
    hal::StartReport report;
    report.state = hal::StartReport::State::kUncached;
    report.reason = "The device nnapi-reference packs nothing and keeps no cache.";
    report.activationBytes = interpreter_->activationBytes();
    return report;
  }

 private:
  std::shared_ptr<const graph::Model> model_;
  std::shared_ptr<const ops::Interpreter> interpreter_;
};

Status checkOperation(const graph::Model& model, const graph::Subgraph& subgraph,
                      const graph::Operation& operation) {
  const ops::OperationDefinition* definition = ops::findOperation(operation.type);
  if (definition == nullptr)
    return fail(ErrorCode::kUnsupported, "{} has no kernel.", graph::nameOf(operation.type));
  return definition->validate(model, subgraph, operation);
}

// Answers for whole subgraphs that operations refer to, each looked at once.
class SubgraphCheck {
 public:
  explicit SubgraphCheck(const graph::Model& model)
      : model_(model), checks_(model.subgraphs.size()) {}

  // The first operation that has no support below `operation`, or success.
  Status check(const graph::Operation& operation) {
    std::vector<uint32_t> pending;
    collect(model_.main(), operation, &pending);
    std::vector<bool> isQueued(model_.subgraphs.size());
    for (size_t i = 0; i < pending.size(); ++i) {
      if (isQueued[pending[i]]) continue;
      isQueued[pending[i]] = true;
      const graph::Subgraph& subgraph = model_.subgraphs[pending[i]];
      HEARTH_TRY(checkSubgraph(pending[i]));
      for (const graph::Operation& inner : subgraph.operations) collect(subgraph, inner, &pending);
    }
    return {};
  }

 private:
  static void collect(const graph::Subgraph& subgraph, const graph::Operation& operation,
                      std::vector<uint32_t>* pending) {
    for (uint32_t index : operation.inputs)
      if (subgraph.operands[index].lifetime == graph::Lifetime::kSubgraph)
        pending->push_back(subgraph.operands[index].subgraphIndex);
  }

  Status checkSubgraph(uint32_t index) {
    if (!checks_[index]) {
      checks_[index] = std::make_unique<Status>();
      const graph::Subgraph& subgraph = model_.subgraphs[index];
      for (const graph::Operation& operation : subgraph.operations) {
        *checks_[index] = checkOperation(model_, subgraph, operation);
        if (!*checks_[index]) break;
      }
    }
    return *checks_[index];
  }

  const graph::Model& model_;
  std::vector<std::unique_ptr<Status>> checks_;
};

class ReferenceDevice final : public hal::Device {
 public:
  std::string name() const override { return "nnapi-reference"; }
  std::string version() const override { return HEARTH_VERSION; }
  hal::DeviceType type() const override { return hal::DeviceType::kCpu; }
  int64_t featureLevel() const override { return kFeatureLevel; }

  hal::Capabilities capabilities() const override {
    hal::Capabilities capabilities;
    for (const graph::OperandTypeInfo& info : graph::operandTypes())
      capabilities.operandPerformance[info.type] = {1.0f, 1.0f};
    return capabilities;
  }

  std::vector<std::string> supportedExtensions() const override {
    return {std::string(graph::kTfliteExtensionName)};
  }

  Result<std::vector<hal::OperationSupport>> supportedOperations(
      const graph::Model& model) override {
    HEARTH_TRY(hal::checkPoolsMapped(model));
    HEARTH_TRY(graph::validate(model));
    SubgraphCheck nested(model);
    std::vector<hal::OperationSupport> supports;
    for (const graph::Operation& operation : model.main().operations) {
      Status status = checkOperation(model, model.main(), operation);
      if (status) status = nested.check(operation);
      if (status)
        supports.push_back({true, "reference", ""});
      else
        supports.push_back({false, "", status.error().toString()});
    }
    return supports;
  }

  Result<std::shared_ptr<hal::PreparedModel>> prepareModel(
      std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
      hal::Cache /*cache*/) override {
    if (model == nullptr) return fail(ErrorCode::kUnexpectedNull, "The model is null.");
    if (options.deadline.hasPassed())
      return fail(ErrorCode::kMissedDeadlinePersistent,
                  "The deadline has passed before the preparation.");
    HEARTH_TRY(hal::checkPoolsMapped(*model));
    HEARTH_TRY(graph::validate(*model));
    HEARTH_TRY(ops::validateOperations(*model));
    ops::InterpreterOptions interpreterOptions;
    interpreterOptions.maxActivationBytes = options.maxActivationBytes;
    HEARTH_ASSIGN(std::shared_ptr<const ops::Interpreter> interpreter,
                  ops::Interpreter::create(model, std::move(interpreterOptions)));
    return std::make_shared<ReferencePreparedModel>(std::move(model), std::move(interpreter));
  }
};

}  // namespace

std::shared_ptr<hal::Device> createDevice() {
  return std::make_shared<ReferenceDevice>();
}

}  // namespace hearth::drivers::reference
