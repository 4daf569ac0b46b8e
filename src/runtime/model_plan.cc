// SPDX-License-Identifier: Apache-2.0
#include "runtime/model_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "base/trace.h"
#include "runtime/compound_model.h"
#include "runtime/control_flow_model.h"
#include "runtime/device_model.h"
#include "runtime/fallback_model.h"
#include "runtime/step_model.h"

namespace hearth::runtime {
namespace {

// How deep control flow that no device takes as a whole may be nested.
constexpr unsigned kMaxDepth = 32;

// What all parts of one model are planned with.
struct Planning {
  const std::vector<std::shared_ptr<hal::Device>>& devices;
  const hal::PrepareOptions& options;
  const CacheRequest* cache;  // null: none
  const PreparePart& preparePart;
  uint32_t models = 1;  // met so far, the main one included
};

Result<ModelPlan> planOnDevices(const std::shared_ptr<const graph::Model>& model,
                                Planning* planning, uint32_t modelIndex, unsigned depth);

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

std::string describeStep(const std::string& device, const std::vector<uint32_t>& operations) {
  std::string text =
      base::formatText("{}: {}", device, operations.size() == 1 ? "operation" : "operations");
  for (const uint32_t operation : operations) text += base::formatText(" {}", operation);
  return text;
}

CacheKeyHash cacheKey(const Planning& planning) {
  return CacheKeyHash(planning.cache != nullptr ? planning.cache->token : hal::CacheToken());
}

ModelPlan wholePlan(const std::shared_ptr<const graph::Model>& model,
                    const std::shared_ptr<hal::Device>& device, CachedPreparation made) {
  ModelPlan plan;
  plan.prepared = asDeviceModel(made.prepared, model, device->name());
  plan.caches = {std::move(made.cache)};
  plan.devices = {device->name()};
  plan.operations.resize(1);
  plan.operations[0].resize(model->main().operations.size());
  std::iota(plan.operations[0].begin(), plan.operations[0].end(), 0u);
  // Drivers allocate memory for what they made themselves.
  for (uint32_t i = 0; i < model->main().inputs.size(); ++i)
    plan.inputUses.push_back({{device, made.prepared, i}});
  for (uint32_t i = 0; i < model->main().outputs.size(); ++i)
    plan.outputUses.push_back({{device, made.prepared, i}});
  return plan;
}

// What to say of several parts together: the first that is no hit.
std::string sumOf(const std::vector<std::string>& caches) {
  for (const std::string& cache : caches)
    if (!cache.empty() && cache != kCacheHit) return cache;
  return std::ranges::find(caches, kCacheHit) != caches.end() ? kCacheHit : "";
}

// The operations of a model that is not divided count for its key only where it is part of another.
Result<ModelPlan> planWhole(const std::shared_ptr<const graph::Model>& model,
                            const std::shared_ptr<hal::Device>& device, const Planning& planning,
                            const PartitionStep& step, uint32_t modelIndex) {
  CacheKeyHash key = cacheKey(planning);
  if (modelIndex != 0)
    for (const uint32_t operation : step.operations) key.addOperation(modelIndex, operation);
  const auto itself = [&]() -> Result<std::shared_ptr<const graph::Model>> {
    return model;
  };
  const CacheRequest* cache = planning.cache;
  if (cache != nullptr && cache->isByFiles && modelIndex != 0) cache = nullptr;
  HEARTH_ASSIGN(CachedPreparation made,
                planning.preparePart(*device, itself, planning.options, cache, key));
  return wholePlan(model, device, std::move(made));
}

Result<ModelPlan> planSteps(const std::shared_ptr<const graph::Model>& model, Planning* planning,
                            std::vector<PartitionStep> steps, uint32_t modelIndex, unsigned depth) {
  const graph::Subgraph& main = model->main();
  const std::vector<uint32_t> inputs = positionsOf(main.inputs, main.operands.size());
  const std::vector<uint32_t> outputs = positionsOf(main.outputs, main.operands.size());
  ModelPlan plan;
  plan.inputUses.resize(main.inputs.size());
  plan.outputUses.resize(main.outputs.size());
  std::vector<CompoundStep> parts;
  std::vector<std::string> caches;  // of the subgraphs of one step
  const bool hasFolder = planning->cache != nullptr && !planning->cache->isByFiles;
  const auto prepareSubgraph = [&](std::shared_ptr<const graph::Model> subgraph)
      -> Result<std::shared_ptr<hal::PreparedModel>> {
    const uint32_t index = planning->models++;
    HEARTH_ASSIGN(ModelPlan inner, planOnDevices(subgraph, planning, index, depth + 1));
    caches.insert(caches.end(), inner.caches.begin(), inner.caches.end());
    return std::move(inner.prepared);
  };
  for (PartitionStep& step : steps) {
    std::shared_ptr<hal::Device> device;
    if (step.device < planning->devices.size()) device = planning->devices[step.device];
    const std::string name = device != nullptr ? device->name() : "control flow";
    StepModel part = makeStepModel(*model, step.operations);
    const auto validated = [&]() -> Result<std::shared_ptr<const graph::Model>> {
      HEARTH_TRY_CONTEXT(graph::validate(*part.model), "in the part of {}", name);
      return part.model;
    };
    CompoundStep made;
    caches.clear();
    if (device != nullptr) {
      CacheKeyHash key = cacheKey(*planning);
      for (const uint32_t operation : step.operations) key.addOperation(modelIndex, operation);
      HEARTH_ASSIGN(CachedPreparation prepared,
                    planning->preparePart(*device, validated, planning->options,
                                          hasFolder ? planning->cache : nullptr, key));
      made.prepared = std::move(prepared.prepared);
      caches.push_back(std::move(prepared.cache));
    } else {
      HEARTH_TRY(validated());
      HEARTH_ASSIGN(made.prepared, prepareControlFlow(part.model, prepareSubgraph));
    }
    noteUses(part.inputs, inputs, device, made.prepared, &plan.inputUses);
    noteUses(part.outputs, outputs, device, made.prepared, &plan.outputUses);
    // An output of the model that a later step reads is an argument there, too.
    noteUses(part.inputs, outputs, device, made.prepared, &plan.outputUses);
    made.prepared = asDeviceModel(std::move(made.prepared), part.model, name);
    made.inputs = std::move(part.inputs);
    made.outputs = std::move(part.outputs);
    made.name = describeStep(name, step.operations);
    parts.push_back(std::move(made));
    plan.devices.push_back(name);
    plan.caches.push_back(sumOf(caches));
    plan.operations.push_back(std::move(step.operations));
  }
  HEARTH_ASSIGN(plan.prepared, makeCompoundModel(model, std::move(parts)));
  return plan;
}

Result<ModelPlan> planOnDevices(const std::shared_ptr<const graph::Model>& model,
                                Planning* planning, uint32_t modelIndex, unsigned depth) {
  if (depth > kMaxDepth)
    return fail(ErrorCode::kUnsupported,
                "Control flow between devices is nested more than {} deep.", kMaxDepth);
  HEARTH_ASSIGN(std::vector<PartitionStep> steps,
                partition(*model, planning->devices, planning->options.preference));
  if (steps.size() == 1 && steps[0].device < planning->devices.size())
    return planWhole(model, planning->devices[steps[0].device], *planning, steps[0], modelIndex);
  return planSteps(model, planning, std::move(steps), modelIndex, depth);
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
  Planning planning{devices, options.prepare, options.cache.get(), options.preparePart};
  auto plan = planOnDevices(model, &planning, 0, 0);
  if (!plan) {
    if (options.fallback == nullptr || !isWorthTheFallback(plan.error())) return plan;
    auto whole = options.fallback->prepareModel(model, options.prepare, hal::Cache());
    if (!whole) return plan;
    base::logWarn("The whole model goes to {}. {}", options.fallback->name(),
                  plan.error().toString());
    return wholePlan(model, options.fallback, {std::move(*whole), ""});
  }
  base::logDebug("A model is planned. {}.", describePlan(*plan));
  if (base::traceEnabled()) {
    const std::string text = describePlan(*plan);
    const base::TraceSpan plan("runtime", text);
  }
  const bool isFallbackAlone =
      options.fallback != nullptr && plan->devices == std::vector{options.fallback->name()};
  if (options.fallback != nullptr && !isFallbackAlone)
    plan->prepared =
        withFallback(std::move(plan->prepared), model, options.fallback, options.prepare);
  return plan;
}

std::string describePlan(const ModelPlan& plan) {
  std::string text;
  for (size_t i = 0; i < plan.devices.size(); ++i)
    text += (i == 0 ? "" : "; ") + describeStep(plan.devices[i], plan.operations[i]);
  return text;
}

}  // namespace hearth::runtime
