// SPDX-License-Identifier: Apache-2.0
#include "runtime/model_plan.h"

#include <numeric>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "base/trace.h"
#include "runtime/compound_model.h"
#include "runtime/control_flow_model.h"
#include "runtime/fallback_model.h"
#include "runtime/step_model.h"

namespace hearth::runtime {
namespace {

// How deep control flow that no device takes as a whole may be nested.
constexpr unsigned kMaxDepth = 32;

Result<ModelPlan> planOnDevices(const std::shared_ptr<const graph::Model>& model,
                                const std::vector<std::shared_ptr<hal::Device>>& devices,
                                const hal::PrepareOptions& options, unsigned depth);

// Positions of the main subgraph's operands among its inputs and outputs.
std::vector<uint32_t> positionsOf(const std::vector<uint32_t>& arguments, size_t operandCount) {
  std::vector<uint32_t> positions(operandCount, UINT32_MAX);
  for (uint32_t i = 0; i < arguments.size(); ++i) positions[arguments[i]] = i;
  return positions;
}

void noteUses(const std::vector<uint32_t>& operands, const std::vector<uint32_t>& positions,
              const std::shared_ptr<hal::Device>& device,
              const std::shared_ptr<hal::PreparedModel>& prepared,
              std::vector<std::vector<ArgumentUse>>* uses) {
  for (uint32_t i = 0; i < operands.size(); ++i)
    if (positions[operands[i]] != UINT32_MAX)
      (*uses)[positions[operands[i]]].push_back({device, prepared, i});
}

Result<ModelPlan> planWhole(const std::shared_ptr<const graph::Model>& model,
                            const std::shared_ptr<hal::Device>& device,
                            const hal::PrepareOptions& options) {
  ModelPlan plan;
  HEARTH_ASSIGN(plan.prepared, device->prepareModel(model, options, hal::Cache()));
  plan.devices = {device->name()};
  plan.operations.resize(1);
  plan.operations[0].resize(model->main().operations.size());
  std::iota(plan.operations[0].begin(), plan.operations[0].end(), 0u);
  for (uint32_t i = 0; i < model->main().inputs.size(); ++i)
    plan.inputUses.push_back({{device, plan.prepared, i}});
  for (uint32_t i = 0; i < model->main().outputs.size(); ++i)
    plan.outputUses.push_back({{device, plan.prepared, i}});
  return plan;
}

Result<ModelPlan> planSteps(const std::shared_ptr<const graph::Model>& model,
                            const std::vector<std::shared_ptr<hal::Device>>& devices,
                            std::vector<PartitionStep> steps, const hal::PrepareOptions& options,
                            unsigned depth) {
  const graph::Subgraph& main = model->main();
  const std::vector<uint32_t> inputs = positionsOf(main.inputs, main.operands.size());
  const std::vector<uint32_t> outputs = positionsOf(main.outputs, main.operands.size());
  ModelPlan plan;
  plan.inputUses.resize(main.inputs.size());
  plan.outputUses.resize(main.outputs.size());
  std::vector<CompoundStep> parts;
  const auto prepareSubgraph = [&](std::shared_ptr<const graph::Model> subgraph)
      -> Result<std::shared_ptr<hal::PreparedModel>> {
    HEARTH_ASSIGN(ModelPlan inner, planOnDevices(subgraph, devices, options, depth + 1));
    return std::move(inner.prepared);
  };
  for (PartitionStep& step : steps) {
    std::shared_ptr<hal::Device> device;
    if (step.device < devices.size()) device = devices[step.device];
    const std::string name = device != nullptr ? device->name() : "control flow";
    StepModel part = makeStepModel(*model, step.operations);
    HEARTH_TRY_CONTEXT(graph::validate(*part.model), "in the part of {}", name);
    CompoundStep made;
    if (device != nullptr) {
      HEARTH_ASSIGN(made.prepared, device->prepareModel(part.model, options, hal::Cache()));
    } else {
      HEARTH_ASSIGN(made.prepared, prepareControlFlow(part.model, prepareSubgraph));
    }
    noteUses(part.inputs, inputs, device, made.prepared, &plan.inputUses);
    noteUses(part.outputs, outputs, device, made.prepared, &plan.outputUses);
    // An output of the model that a later step reads is an argument there, too.
    noteUses(part.inputs, outputs, device, made.prepared, &plan.outputUses);
    made.inputs = std::move(part.inputs);
    made.outputs = std::move(part.outputs);
    parts.push_back(std::move(made));
    plan.devices.push_back(name);
    plan.operations.push_back(std::move(step.operations));
  }
  HEARTH_ASSIGN(plan.prepared, makeCompoundModel(model, std::move(parts)));
  return plan;
}

Result<ModelPlan> planOnDevices(const std::shared_ptr<const graph::Model>& model,
                                const std::vector<std::shared_ptr<hal::Device>>& devices,
                                const hal::PrepareOptions& options, unsigned depth) {
  if (depth > kMaxDepth)
    return fail(ErrorCode::kUnsupported,
                "Control flow between devices is nested more than {} deep.", kMaxDepth);
  HEARTH_ASSIGN(std::vector<PartitionStep> steps, partition(*model, devices, options.preference));
  if (steps.size() == 1 && steps[0].device < devices.size())
    return planWhole(model, devices[steps[0].device], options);
  return planSteps(model, devices, std::move(steps), options, depth);
}

bool isWorthTheFallback(const Error& error) {
  return error.code() != ErrorCode::kBadData && error.code() != ErrorCode::kUnexpectedNull;
}

}  // namespace

Result<ModelPlan> planModel(std::shared_ptr<const graph::Model> model,
                            const std::vector<std::shared_ptr<hal::Device>>& devices,
                            const ModelPlanOptions& options) {
  const base::TraceSpan span("runtime", "plan");
  if (devices.empty()) return fail(ErrorCode::kUnavailableDevice, "There is no device.");
  auto plan = planOnDevices(model, devices, options.prepare, 0);
  if (!plan) {
    if (options.fallback == nullptr || !isWorthTheFallback(plan.error())) return plan;
    auto whole = planWhole(model, options.fallback, options.prepare);
    if (!whole) return plan;
    base::logWarn("The whole model goes to {}. {}", options.fallback->name(),
                  plan.error().toString());
    return whole;
  }
  base::logDebug("A model is planned. {}.", describePlan(*plan));
  const bool isFallbackAlone =
      options.fallback != nullptr && plan->devices == std::vector{options.fallback->name()};
  if (options.fallback != nullptr && !isFallbackAlone)
    plan->prepared =
        withFallback(std::move(plan->prepared), model, options.fallback, options.prepare);
  return plan;
}

std::string describePlan(const ModelPlan& plan) {
  std::string text;
  for (size_t i = 0; i < plan.devices.size(); ++i) {
    text += base::formatText("{}{}: {}", i == 0 ? "" : "; ", plan.devices[i],
                             plan.operations[i].size() == 1 ? "operation" : "operations");
    for (const uint32_t operation : plan.operations[i]) text += base::formatText(" {}", operation);
  }
  return text;
}

}  // namespace hearth::runtime
