// SPDX-License-Identifier: Apache-2.0
#include "runtime/compilation.h"

#include <utility>

#include "base/env.h"
#include "base/trace.h"
#include "graph/validated_model.h"
#include "memory/limits.h"
#include "runtime/explained_model.h"

namespace hearth::runtime {
namespace {

// Bytes of an operand; 0 where dimensions are not known yet.
Result<uint64_t> knownBytes(const graph::Operand& operand) {
  if (!graph::isFullySpecified(operand)) return 0;
  return graph::byteSize(operand);
}

Status checkActivations(const graph::Model& model, uint64_t limit) {
  for (const graph::Subgraph& subgraph : model.subgraphs) {
    for (const graph::Operand& operand : subgraph.operands) {
      if (operand.isConstant() || !operand.hasValue() ||
          operand.lifetime == graph::Lifetime::kSubgraph)
        continue;
      HEARTH_ASSIGN(const uint64_t bytes, knownBytes(operand));
      if (bytes > limit)
        return fail(ErrorCode::kResourceExhaustedPersistent,
                    "The tensor {} needs {} bytes; the limit for activations is {}.",
                    graph::describe(operand), bytes, limit);
    }
  }
  // Callers allocate the arguments, so their sum counts, too.
  const graph::Subgraph& main = model.main();
  std::vector<uint32_t> arguments = main.inputs;
  arguments.insert(arguments.end(), main.outputs.begin(), main.outputs.end());
  uint64_t sum = 0;
  for (const uint32_t index : arguments) {
    HEARTH_ASSIGN(const uint64_t bytes, knownBytes(main.operands[index]));
    if (__builtin_add_overflow(sum, bytes, &sum) || sum > limit)
      return fail(ErrorCode::kResourceExhaustedPersistent,
                  "The inputs and outputs up to {} need {} bytes; the limit for activations is {}.",
                  graph::describe(main.operands[index]), sum, limit);
  }
  return {};
}

Status checkStates(const graph::Model& model, const std::vector<graph::StatePair>& states) {
  const graph::Subgraph& main = model.main();
  if (states.size() > main.inputs.size() || states.size() > main.outputs.size())
    return fail(ErrorCode::kBadData, "The model has {} states but {} inputs and {} outputs.",
                states.size(), main.inputs.size(), main.outputs.size());
  const size_t firstInput = main.inputs.size() - states.size();
  const size_t firstOutput = main.outputs.size() - states.size();
  std::vector<bool> hasInput(main.inputs.size());
  std::vector<bool> hasOutput(main.outputs.size());
  for (const graph::StatePair& state : states) {
    if (state.input < firstInput || state.input >= main.inputs.size() ||
        state.output < firstOutput || state.output >= main.outputs.size() ||
        hasInput[state.input] || hasOutput[state.output])
      return fail(ErrorCode::kBadData,
                  "The state from output {} to input {} is not behind the model's own arguments.",
                  state.output, state.input);
    hasInput[state.input] = hasOutput[state.output] = true;
    const graph::Operand& from = main.operands[main.outputs[state.output]];
    const graph::Operand& to = main.operands[main.inputs[state.input]];
    HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(to));
    HEARTH_ASSIGN(const uint64_t sourceBytes, graph::byteSize(from));
    if (from.type != to.type || sourceBytes != bytes)
      return fail(ErrorCode::kBadData, "The state {} cannot become {}.", graph::describe(from),
                  graph::describe(to));
    if (!state.initialValue.empty() && state.initialValue.size() != bytes)
      return fail(ErrorCode::kBadData, "The initial value of the state {} has {} bytes, not {}.",
                  graph::describe(to), state.initialValue.size(), bytes);
  }
  return {};
}

// Who computes what fails on one of the devices: the reference, and before it the first CPU, which
// is faster, where a device is no CPU.
std::vector<std::shared_ptr<hal::Device>> fallbacksAmong(
    const std::vector<std::shared_ptr<hal::Device>>& devices,
    const std::shared_ptr<hal::Device>& reference) {
  constexpr auto isCpu = [](const std::shared_ptr<hal::Device>& device) {
    return device->type() == hal::DeviceType::kCpu;
  };
  std::vector<std::shared_ptr<hal::Device>> fallbacks;
  const auto cpu = std::ranges::find_if(devices, isCpu);
  if (cpu != devices.end() && *cpu != reference && !std::ranges::all_of(devices, isCpu))
    fallbacks.push_back(*cpu);
  if (reference != nullptr) fallbacks.push_back(reference);
  return fallbacks;
}

// Options with defaults and settings filled in, for create() and its explanations.
struct Resolved {
  std::vector<std::shared_ptr<hal::Device>> devices;
  PartitioningOptions partitioning;
};

Result<Resolved> resolve(const graph::Model& model, const CompilationOptions& options,
                         const DeviceManager& manager) {
  HEARTH_TRY(graph::validateOnce(model));
  Resolved resolved;
  resolved.devices = options.devices.empty() ? manager.devices() : options.devices;
  if (options.devices.empty())
    resolved.partitioning.fallbacks = fallbacksAmong(resolved.devices, manager.reference());
  resolved.partitioning.cache = options.cache;
  hal::PrepareOptions& prepare = resolved.partitioning.prepare;
  prepare = options.prepare;
  if (options.preparation) {
    prepare.preparation = *options.preparation;
  } else {
    HEARTH_ASSIGN(const std::string word, base::envChoice(base::Env::kPreparation));
    prepare.preparation =
        word == "whole" ? hal::Preparation::kWhole : hal::Preparation::kJustInTime;
  }
  if (options.isTuned) {
    prepare.isTuned = *options.isTuned;
  } else {
    HEARTH_ASSIGN(const std::string word, base::envChoice(base::Env::kTuning));
    prepare.isTuned = word == "on";
  }
  if (prepare.isTuned) resolved.partitioning.speeds = manager.speeds();
  if (prepare.threads == 0) {
    HEARTH_ASSIGN(const int64_t threads, base::envInteger(base::Env::kThreads));
    prepare.threads = static_cast<unsigned>(threads);
  }
  if (prepare.maxActivationBytes == 0) prepare.maxActivationBytes = defaultActivationLimit();
  HEARTH_TRY(checkActivations(model, prepare.maxActivationBytes));
  return resolved;
}

}  // namespace

uint64_t defaultActivationLimit() {
  return memory::machineMemory() / 2;
}

Result<hal::StartReport> Compilation::explainStart(std::shared_ptr<const graph::Model> model,
                                                   const CompilationOptions& options,
                                                   const DeviceManager& manager) {
  HEARTH_ASSIGN(Resolved resolved, resolve(*model, options, manager));
  resolved.partitioning.fallbacks.clear();
  resolved.partitioning.cache = nullptr;
  resolved.partitioning.preparePart = [](hal::Device& device, const ModelSource& source,
                                         const hal::PrepareOptions& prepare, const CacheRequest*,
                                         CacheKeyHash) -> Result<CachedPreparation> {
    HEARTH_ASSIGN(auto part, source());
    HEARTH_ASSIGN(hal::StartReport report, device.explainStart(std::move(part), prepare));
    return CachedPreparation{explainedModel(std::move(report)), ""};
  };
  HEARTH_ASSIGN(const PartitionedModel parts,
                preparePartitioned(std::move(model), resolved.devices, resolved.partitioning));
  return parts.prepared->startReport();
}

Result<std::vector<CacheExplanation>> Compilation::explainCaches(
    std::shared_ptr<const graph::Model> model, const CompilationOptions& options,
    const DeviceManager& manager) {
  HEARTH_ASSIGN(Resolved resolved, resolve(*model, options, manager));
  resolved.partitioning.fallbacks.clear();
  return explainParts(std::move(model), resolved.devices, std::move(resolved.partitioning));
}

Result<std::shared_ptr<const Compilation>> Compilation::create(
    std::shared_ptr<const graph::Model> model, std::vector<graph::StatePair> states,
    const CompilationOptions& options, const DeviceManager& manager) {
  const base::TraceSpan span("runtime", "compile");
  HEARTH_ASSIGN(const Resolved resolved, resolve(*model, options, manager));
  HEARTH_TRY(checkStates(*model, states));
  std::shared_ptr<Compilation> compilation(new Compilation());
  HEARTH_ASSIGN(compilation->parts_,
                preparePartitioned(model, resolved.devices, resolved.partitioning));
  compilation->model_ = std::move(model);
  compilation->states_ = std::move(states);
  compilation->priority_ = options.prepare.priority;
  compilation->explicitDevices_ = options.devices.size();
  return compilation;
}

std::string Compilation::deviceNames() const {
  std::string names;
  for (const std::string& device : parts_.devices) names += (names.empty() ? "" : ", ") + device;
  return names;
}

std::string Compilation::cacheOutcome() const {
  std::string outcome;
  for (const std::string& cache : parts_.caches)
    if (!cache.empty() && (outcome.empty() || outcome == kCacheHit)) outcome = cache;
  return outcome;
}

}  // namespace hearth::runtime
