// SPDX-License-Identifier: Apache-2.0
#include "runtime/partitioned_model.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "base/trace.h"
#include "graph/step_model.h"
#include "runtime/control_flow_model.h"
#include "runtime/device_model.h"
#include "runtime/fallback_model.h"
#include "runtime/model_sequence.h"

namespace hearth::runtime {
namespace {

// How deep control flow that no device takes as a whole may be nested.
constexpr unsigned kMaxDepth = 32;

// Shared by the preparation of all parts of one model.
struct Preparation {
  const std::vector<std::shared_ptr<hal::Device>>& devices;
  const hal::PrepareOptions& options;
  const hal::PrepareOptions& partOptions;  // without what is about the main model's inputs
  const CacheRequest* cache;               // null: none
  const PreparePart& preparePart;
  DeviceSpeeds* speeds;  // null: none
  uint32_t models = 1;   // met so far, the main one included
};

Result<PartitionedModel> prepareOnDevices(const std::shared_ptr<const graph::Model>& model,
                                          Preparation* preparation, uint32_t modelIndex,
                                          unsigned depth);

// The position of each operand in `arguments`, or UINT32_MAX.
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

CacheKeyHash cacheKey(const Preparation& preparation) {
  return CacheKeyHash(preparation.cache != nullptr ? preparation.cache->token : hal::CacheToken());
}

PartitionedModel wholeModel(const std::shared_ptr<const graph::Model>& model,
                            const std::shared_ptr<hal::Device>& device, CachedPreparation part) {
  PartitionedModel made;
  made.prepared = asDeviceModel(part.prepared, model, device->name());
  made.caches = {std::move(part.cache)};
  made.devices = {device->name()};
  made.operations.resize(1);
  made.operations[0].resize(model->main().operations.size());
  std::iota(made.operations[0].begin(), made.operations[0].end(), 0u);
  // The driver's own prepared model, not the wrapper: drivers allocate memory for their own models.
  for (uint32_t i = 0; i < model->main().inputs.size(); ++i)
    made.inputUses.push_back({{device, part.prepared, i}});
  for (uint32_t i = 0; i < model->main().outputs.size(); ++i)
    made.outputUses.push_back({{device, part.prepared, i}});
  return made;
}

// The outcome of several parts together: that of the first part that is no hit.
std::string sumOf(const std::vector<std::string>& caches) {
  for (const std::string& cache : caches)
    if (!cache.empty() && cache != kCacheHit) return cache;
  return std::ranges::find(caches, kCacheHit) != caches.end() ? kCacheHit : "";
}

// Prepares a model that one device takes as a whole. Its operations are hashed into the key only if
// it is a subgraph of another model.
Result<PartitionedModel> prepareWhole(const std::shared_ptr<const graph::Model>& model,
                                      const std::shared_ptr<hal::Device>& device,
                                      const Preparation& preparation, const PartitionStep& step,
                                      uint32_t modelIndex) {
  CacheKeyHash key = cacheKey(preparation);
  if (modelIndex != 0)
    for (const uint32_t operation : step.operations) key.addOperation(modelIndex, operation);
  const auto itself = [&]() -> Result<std::shared_ptr<const graph::Model>> {
    return model;
  };
  const CacheRequest* cache = preparation.cache;
  if (cache != nullptr && cache->isByFiles && modelIndex != 0) cache = nullptr;
  HEARTH_ASSIGN(CachedPreparation made,
                preparation.preparePart(
                    *device, itself,
                    modelIndex == 0 ? preparation.options : preparation.partOptions, cache, key));
  return wholeModel(model, device, std::move(made));
}

Result<PartitionedModel> prepareSteps(const std::shared_ptr<const graph::Model>& model,
                                      Preparation* preparation, std::vector<PartitionStep> steps,
                                      uint32_t modelIndex, unsigned depth) {
  const graph::Subgraph& main = model->main();
  const std::vector<uint32_t> inputs = positionsOf(main.inputs, main.operands.size());
  const std::vector<uint32_t> outputs = positionsOf(main.outputs, main.operands.size());
  PartitionedModel made;
  made.inputUses.resize(main.inputs.size());
  made.outputUses.resize(main.outputs.size());
  std::vector<SequenceStep> parts;
  std::vector<std::string> caches;  // of the subgraphs of one step
  const bool hasFolder = preparation->cache != nullptr && !preparation->cache->isByFiles;
  const auto prepareSubgraph = [&](std::shared_ptr<const graph::Model> subgraph)
      -> Result<std::shared_ptr<hal::PreparedModel>> {
    const uint32_t index = preparation->models++;
    HEARTH_ASSIGN(PartitionedModel inner,
                  prepareOnDevices(subgraph, preparation, index, depth + 1));
    caches.insert(caches.end(), inner.caches.begin(), inner.caches.end());
    return std::move(inner.prepared);
  };
  for (PartitionStep& step : steps) {
    std::shared_ptr<hal::Device> device;
    if (step.device < preparation->devices.size()) device = preparation->devices[step.device];
    const std::string name = device != nullptr ? device->name() : "control flow";
    graph::StepModel part = graph::makeStepModel(*model, step.operations);
    const auto validated = [&]() -> Result<std::shared_ptr<const graph::Model>> {
      HEARTH_TRY_CONTEXT(graph::validate(*part.model), "in the part of {}", name);
      return part.model;
    };
    SequenceStep next;
    caches.clear();
    if (device != nullptr) {
      CacheKeyHash key = cacheKey(*preparation);
      for (const uint32_t operation : step.operations) key.addOperation(modelIndex, operation);
      HEARTH_ASSIGN(CachedPreparation prepared,
                    preparation->preparePart(*device, validated, preparation->partOptions,
                                             hasFolder ? preparation->cache : nullptr, key));
      next.prepared = std::move(prepared.prepared);
      caches.push_back(std::move(prepared.cache));
    } else {
      HEARTH_TRY(validated());
      HEARTH_ASSIGN(next.prepared, prepareControlFlow(part.model, prepareSubgraph));
    }
    noteUses(part.inputs, inputs, device, next.prepared, &made.inputUses);
    noteUses(part.outputs, outputs, device, next.prepared, &made.outputUses);
    // An output of the model that a later step reads is an argument there, too.
    noteUses(part.inputs, outputs, device, next.prepared, &made.outputUses);
    next.prepared = asDeviceModel(std::move(next.prepared), part.model, name);
    next.inputs = std::move(part.inputs);
    next.outputs = std::move(part.outputs);
    next.name = describeStep(name, step.operations);
    parts.push_back(std::move(next));
    made.devices.push_back(name);
    made.caches.push_back(sumOf(caches));
    made.operations.push_back(std::move(step.operations));
  }
  HEARTH_ASSIGN(made.prepared, makeModelSequence(model, std::move(parts)));
  return made;
}

Result<PartitionedModel> prepareOnDevices(const std::shared_ptr<const graph::Model>& model,
                                          Preparation* preparation, uint32_t modelIndex,
                                          unsigned depth) {
  if (depth > kMaxDepth)
    return fail(ErrorCode::kUnsupported,
                "Control flow between devices is nested more than {} deep.", kMaxDepth);
  HEARTH_ASSIGN(Partition chosen,
                partition(*model, preparation->devices, preparation->options, preparation->speeds));
  std::vector<PartitionStep>& steps = chosen.steps;
  const bool isWhole = steps.size() == 1 && steps[0].device < preparation->devices.size();
  HEARTH_ASSIGN(PartitionedModel made,
                isWhole ? prepareWhole(model, preparation->devices[steps[0].device], *preparation,
                                       steps[0], modelIndex)
                        : prepareSteps(model, preparation, std::move(steps), modelIndex, depth));
  made.reason = std::move(chosen.reason);
  return made;
}

}  // namespace

Result<PartitionedModel> preparePartitioned(
    std::shared_ptr<const graph::Model> model,
    const std::vector<std::shared_ptr<hal::Device>>& devices, const PartitioningOptions& options) {
  const base::TraceSpan span("runtime", "partition");
  if (devices.empty()) return fail(ErrorCode::kUnavailableDevice, "There is no device.");
  hal::PrepareOptions partOptions = options.prepare;
  partOptions.expectedInputs.clear();
  Preparation preparation{
      devices,       options.prepare, partOptions, options.cache.get(), options.preparePart,
      options.speeds};
  const bool isOwnMemory = std::ranges::all_of(
      devices, [](const auto& device) { return device->type() == hal::DeviceType::kCpu; });
  auto made = prepareOnDevices(model, &preparation, 0, 0);
  if (!made) {
    if (!isWorthAnotherDevice(made.error(), Attempt::kPreparation, isOwnMemory)) return made;
    for (const std::shared_ptr<hal::Device>& fallback : options.fallbacks) {
      auto whole = fallback->prepareModel(model, options.prepare, hal::Cache());
      if (!whole) continue;
      base::logWarn("The whole model goes to {}. {}", fallback->name(), made.error().toString());
      return wholeModel(model, fallback, {std::move(*whole), ""});
    }
    return made;
  }
  if (base::logEnabled(base::LogLevel::kDebug))
    base::logDebug("A model is partitioned. {}.{}{}", describeParts(*made),
                   made->reason.empty() ? "" : " Expected: ", made->reason);
  if (base::traceEnabled()) {
    const std::string text = describeParts(*made);
    const base::TraceSpan parts("runtime", text);
  }
  for (const std::shared_ptr<hal::Device>& fallback : options.fallbacks)
    if (made->devices != std::vector{fallback->name()})
      made->prepared =
          withFallback(std::move(made->prepared), model, fallback, options.prepare, isOwnMemory);
  return made;
}

std::string describeParts(const PartitionedModel& made) {
  std::string text;
  for (size_t i = 0; i < made.devices.size(); ++i)
    text += (i == 0 ? "" : "; ") + describeStep(made.devices[i], made.operations[i]);
  return text;
}

}  // namespace hearth::runtime
