// SPDX-License-Identifier: Apache-2.0
#include "runtime/compilation.h"

#include <algorithm>

#include "base/env.h"
#include "base/format.h"
#include "base/trace.h"
#include "graph/validated_model.h"
#include "memory/limits.h"
#include "runtime/device_model.h"

namespace hearth::runtime {
namespace {

// How many operations a message names before it only counts the rest.
constexpr size_t kMaxNamedOperations = 4;

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
  // Callers allocate arguments, so they count too.
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

Status checkStates(const graph::Model& model, const std::vector<StatePair>& states) {
  const graph::Subgraph& main = model.main();
  if (states.size() > main.inputs.size() || states.size() > main.outputs.size())
    return fail(ErrorCode::kBadData, "The model has {} states but {} inputs and {} outputs.",
                states.size(), main.inputs.size(), main.outputs.size());
  const size_t firstInput = main.inputs.size() - states.size();
  const size_t firstOutput = main.outputs.size() - states.size();
  std::vector<bool> hasInput(main.inputs.size());
  std::vector<bool> hasOutput(main.outputs.size());
  for (const StatePair& state : states) {
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

// Nothing when the device takes every operation, else a sentence on what it does not take.
Result<std::string> missingOn(hal::Device& device, const graph::Model& model) {
  HEARTH_ASSIGN(const std::vector<hal::OperationSupport> support,
                device.supportedOperations(model));
  const graph::Subgraph& main = model.main();
  if (support.size() != main.operations.size())
    return fail(ErrorCode::kOpFailed, "The device {} answers for {} operations of {}.",
                device.name(), support.size(), main.operations.size());
  std::string text;
  size_t missing = 0;
  for (size_t i = 0; i < support.size(); ++i) {
    if (support[i].supported) continue;
    if (++missing > kMaxNamedOperations) continue;
    const graph::Operation& operation = main.operations[i];
    text += base::formatText(
        "{}operation {}, {}{}{}{}", missing == 1 ? "" : "; ", i, graph::nameOf(operation.type),
        operation.name.empty() ? "" : base::formatText(" \"{}\"", operation.name),
        support[i].reason.empty() ? "" : ": ", support[i].reason);
  }
  if (missing == 0) return "";
  while (text.ends_with('.')) text.pop_back();
  if (missing > kMaxNamedOperations)
    text += base::formatText("; and {} more", missing - kMaxNamedOperations);
  return base::formatText("{} does not take {}", device.name(), text);
}

Result<std::shared_ptr<hal::Device>> chooseDevice(const graph::Model& model,
                                                  const std::string& wanted,
                                                  const DeviceManager& devices) {
  std::vector<std::shared_ptr<hal::Device>> candidates = devices.devices();
  if (!wanted.empty()) {
    HEARTH_ASSIGN(auto device, devices.find(wanted));
    candidates = {std::move(device)};
  }
  if (candidates.empty()) return fail(ErrorCode::kUnavailableDevice, "There is no device.");
  std::string reasons;
  for (const auto& device : candidates) {
    auto missing = missingOn(*device, model);
    // A device that fails to answer is out of the choice, not the end of it.
    if (!missing && candidates.size() == 1) return std::unexpected(std::move(missing.error()));
    if (missing && missing->empty()) return device;
    reasons += (reasons.empty() ? "" : "; ") +
               (missing ? *missing : device->name() + " fails: " + missing.error().toString());
  }
  if (candidates.size() == 1) return fail(ErrorCode::kUnsupported, "The device {}.", reasons);
  return fail(ErrorCode::kUnsupported, "No device takes every operation: {}.", reasons);
}

}  // namespace

Result<hal::Preparation> defaultPreparation() {
  HEARTH_ASSIGN(const std::string word, base::envChoice(base::Env::kPreparation));
  return word == "whole" ? hal::Preparation::kWhole : hal::Preparation::kJustInTime;
}

Result<bool> isTunedByDefault() {
  HEARTH_ASSIGN(const std::string word, base::envChoice(base::Env::kTuning));
  return word == "on";
}

uint64_t defaultActivationLimit() {
  return memory::machineMemory() / 2;
}

Result<hal::PrepareOptions> Compilation::prepareOptions(const graph::Model& model,
                                                        const CompilationOptions& options) {
  HEARTH_TRY(graph::validateOnce(model));
  hal::PrepareOptions prepare = options.prepare;
  if (prepare.threads == 0) {
    HEARTH_ASSIGN(const int64_t threads, base::envInteger(base::Env::kThreads));
    prepare.threads = static_cast<unsigned>(threads);
  }
  if (prepare.maxActivationBytes == 0) prepare.maxActivationBytes = defaultActivationLimit();
  HEARTH_TRY(checkActivations(model, prepare.maxActivationBytes));
  return prepare;
}

Result<hal::StartReport> Compilation::explainStart(std::shared_ptr<const graph::Model> model,
                                                   const CompilationOptions& options,
                                                   const DeviceManager& devices) {
  HEARTH_ASSIGN(const hal::PrepareOptions prepare, prepareOptions(*model, options));
  HEARTH_ASSIGN(const auto device, chooseDevice(*model, options.device, devices));
  return device->explainStart(std::move(model), prepare);
}

Result<std::shared_ptr<const Compilation>> Compilation::create(
    std::shared_ptr<const graph::Model> model, std::vector<StatePair> states,
    const CompilationOptions& options, const DeviceManager& devices) {
  const base::TraceSpan span("runtime", "compile");
  HEARTH_ASSIGN(const hal::PrepareOptions prepare, prepareOptions(*model, options));
  HEARTH_TRY(checkStates(*model, states));
  std::shared_ptr<Compilation> compilation(new Compilation());
  HEARTH_ASSIGN(compilation->device_, chooseDevice(*model, options.device, devices));
  HEARTH_ASSIGN(auto prepared, compilation->device_->prepareModel(model, prepare, hal::Cache()));
  compilation->prepared_ = asDeviceModel(std::move(prepared), model, compilation->device_->name());
  compilation->model_ = std::move(model);
  compilation->states_ = std::move(states);
  compilation->priority_ = prepare.priority;
  return compilation;
}

}  // namespace hearth::runtime
