// SPDX-License-Identifier: Apache-2.0
#include "runtime/partitioner.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/log.h"
#include "graph/operation_name.h"
#include "hal/extension_operations.h"
#include "ops/control_flow.h"
#include "ops/custom_operator.h"
#include "runtime/device_manager.h"
#include "runtime/priced_choice.h"
#include "runtime/prices.h"

namespace hearth::runtime {
namespace {

float figureOf(const hal::PerformanceInfo& info, hal::Preference preference) {
  return preference == hal::Preference::kLowPower ? info.powerUsage : info.execTime;
}

// Costs of a model's operations on one device.
class Costs {
 public:
  Costs(const graph::Model& model, const hal::Capabilities& capabilities,
        hal::Preference preference)
      : model_(model), capabilities_(capabilities), preference_(preference) {}

  float of(const graph::Subgraph& subgraph, const graph::Operation& operation);

 private:
  float ofSubgraph(const graph::Operand& reference) {
    if (reference.lifetime != graph::Lifetime::kSubgraph) return 0;
    // Sums each subgraph once: on every level, both branches of an IF may refer to the same one.
    subgraphs_.resize(model_.subgraphs.size());
    std::optional<float>& known = subgraphs_[reference.subgraphIndex];
    if (known) return *known;
    const graph::Subgraph& subgraph = model_.subgraphs[reference.subgraphIndex];
    float sum = 0;
    for (const graph::Operation& operation : subgraph.operations) sum += of(subgraph, operation);
    known = sum;
    return sum;
  }

  const graph::Model& model_;
  const hal::Capabilities& capabilities_;
  const hal::Preference preference_;
  std::vector<std::optional<float>> subgraphs_;
};

float Costs::of(const graph::Subgraph& subgraph, const graph::Operation& operation) {
  const auto nested = [&](size_t input) {
    return input < operation.inputs.size() ? ofSubgraph(subgraph.operands[operation.inputs[input]])
                                           : 0.0f;
  };
  if (operation.type == graph::OperationType::kIf)
    return figureOf(capabilities_.ifPerformance, preference_) +
           0.5f * (nested(ops::kIfThen) + nested(ops::kIfElse));
  if (operation.type == graph::OperationType::kWhile)
    return figureOf(capabilities_.whilePerformance, preference_) + nested(ops::kWhileCondition) +
           nested(ops::kWhileBody);
  if (operation.inputs.empty()) return std::numeric_limits<float>::max();
  const graph::OperandType type = subgraph.operands[operation.inputs[0]].type;
  if (model_.relaxFloat32ToFloat16 &&
      (type == graph::OperandType::kTensorFloat32 || type == graph::OperandType::kFloat32))
    return figureOf(capabilities_.relaxedFloat32, preference_);
  const auto it = capabilities_.operandPerformance.find(type);
  if (it == capabilities_.operandPerformance.end()) return std::numeric_limits<float>::max();
  return figureOf(it->second, preference_);
}

// Which operations each device supports. A device is asked when its answer first matters, because
// it looks at the whole model to answer, and the fastest device mostly takes everything.
class Answers {
 public:
  Answers(const graph::Model& model, std::span<const std::shared_ptr<hal::Device>> devices)
      : model_(model), devices_(devices), answers_(devices.size()) {}

  // The answer for each operation; empty for a device that is left out.
  const std::vector<hal::OperationSupport>& of(size_t device) {
    std::optional<std::vector<hal::OperationSupport>>& answer = answers_[device];
    if (!answer) answer = ask(*devices_[device]);
    return *answer;
  }

 private:
  std::vector<hal::OperationSupport> ask(hal::Device& device) const {
    auto support = device.supportedOperations(model_);
    if (support && support->size() == model_.main().operations.size()) {
      hal::leaveOutExtensionOperations(device, model_, &*support);
      return std::move(*support);
    }
    base::logWarn("The device {} is left out: {}", device.name(),
                  support ? base::formatText("it answers for {} operations of {}.", support->size(),
                                             model_.main().operations.size())
                          : support.error().toString());
    return {};
  }

  const graph::Model& model_;
  const std::span<const std::shared_ptr<hal::Device>> devices_;
  std::vector<std::optional<std::vector<hal::OperationSupport>>> answers_;
};

// Why devices do not take an operation. Most have the same reason, which is given once.
class Reasons {
 public:
  void add(std::string_view device, std::string_view reason) {
    for (Entry& entry : entries_) {
      if (entry.reason != reason) continue;
      entry.devices += ", ";
      entry.devices += device;
      return;
    }
    entries_.push_back({std::string(device), std::string(reason)});
  }

  // ": " and what follows, or "." without any.
  std::string text() const {
    if (entries_.empty()) return ".";
    if (entries_.size() == 1) return ": " + entries_[0].reason;
    std::string text = ":";
    for (const Entry& entry : entries_)
      text += base::formatText(" {}: {}", entry.devices, entry.reason);
    return text;
  }

 private:
  struct Entry {
    std::string devices;
    std::string reason;
  };
  std::vector<Entry> entries_;
};

Result<std::vector<size_t>> chooseDevices(const graph::Model& model,
                                          std::span<const std::shared_ptr<hal::Device>> devices,
                                          hal::Preference preference, Answers& answers) {
  std::vector<hal::Capabilities> capabilities;
  std::vector<bool> isReference;
  for (const auto& device : devices) {
    capabilities.push_back(device->capabilities());
    isReference.push_back(device->name() == kReferenceDeviceName);
  }
  std::vector<size_t> chosen;
  std::string missing;  // the first operation that no device takes
  std::string missingReasons;
  size_t missingCount = 0;
  for (size_t i = 0; i < model.main().operations.size(); ++i) {
    const graph::Operation& operation = model.main().operations[i];
    std::optional<size_t> best;
    float bestCost = 0;
    Reasons reasons;
    for (size_t d = 0; d < devices.size(); ++d) {
      const float cost = operationCost(model, model.main(), operation, capabilities[d], preference);
      const bool wouldWin = !best || cost < bestCost || (cost == bestCost && isReference[d]);
      if (!wouldWin) continue;
      const std::vector<hal::OperationSupport>& answer = answers.of(d);
      if (answer.empty() || !answer[i].supported) {
        if (!answer.empty() && !answer[i].reason.empty())
          reasons.add(devices[d]->name(), answer[i].reason);
        continue;
      }
      best = d;
      bestCost = cost;
    }
    const bool isControlFlow = operation.type == graph::OperationType::kIf ||
                               operation.type == graph::OperationType::kWhile;
    if (!best && isControlFlow) best = devices.size();
    if (!best && ++missingCount == 1) {
      const std::string& name = graph::operationName(model.main(), operation);
      missing = base::formatText("operation {}, {}{}", i,
                                 ops::operatorName(model, model.main(), operation),
                                 name.empty() ? "" : base::formatText(" \"{}\"", name));
      missingReasons = reasons.text();
    }
    chosen.push_back(best.value_or(0));
  }
  if (missingCount != 0)
    return fail(ErrorCode::kUnsupported, "No device takes {}{}{}", missing,
                missingCount == 1 ? ""
                                  : base::formatText(", nor {} other{}", missingCount - 1,
                                                     missingCount == 2 ? "" : "s"),
                missingReasons);
  return chosen;
}

// Nothing where a speed is not known, or there is nothing to choose. `told` is what the drivers'
// own figures say.
std::optional<PricedChoice> choosePriced(const graph::Model& model,
                                         std::span<const std::shared_ptr<hal::Device>> devices,
                                         const hal::PrepareOptions& options, DeviceSpeeds& speeds,
                                         Answers& answers, const std::vector<size_t>& told) {
  std::vector<PricedDevice> priced;
  size_t takers = 0;
  for (size_t d = 0; d < devices.size(); ++d) {
    priced.push_back({devices[d]->name(), std::nullopt, std::vector<bool>(told.size())});
    if (devices[d]->name() == kReferenceDeviceName) continue;
    if (!speeds.has(*devices[d])) return std::nullopt;
    const std::vector<hal::OperationSupport>& answer = answers.of(d);
    for (size_t i = 0; i < answer.size(); ++i) priced[d].takes[i] = answer[i].supported;
    if (std::ranges::contains(priced[d].takes, true)) ++takers;
  }
  if (takers < 2) return std::nullopt;
  const Prices prices(model);
  const std::vector<NumberKind> kinds = prices.kinds();
  for (size_t d = 0; d < devices.size(); ++d) {
    if (!std::ranges::contains(priced[d].takes, true)) continue;
    priced[d].speed = speeds.of(*devices[d], kinds, options);
    if (!priced[d].speed) return std::nullopt;
  }
  return chooseByPrice(model, prices, priced, told);
}

}  // namespace

float operationCost(const graph::Model& model, const graph::Subgraph& subgraph,
                    const graph::Operation& operation, const hal::Capabilities& capabilities,
                    hal::Preference preference) {
  return Costs(model, capabilities, preference).of(subgraph, operation);
}

Result<Partition> partition(const graph::Model& model,
                            std::span<const std::shared_ptr<hal::Device>> devices,
                            const hal::PrepareOptions& options, DeviceSpeeds* speeds) {
  Answers answers(model, devices);
  HEARTH_ASSIGN(std::vector<size_t> deviceOf,
                chooseDevices(model, devices, options.preference, answers));
  Partition made;
  if (speeds != nullptr && options.preference != hal::Preference::kLowPower)
    if (auto choice = choosePriced(model, devices, options, *speeds, answers, deviceOf)) {
      deviceOf = std::move(choice->deviceOf);
      made.reason = std::move(choice->reason);
    }
  made.steps = partitionSteps(model.main(), deviceOf, devices.size());
  return made;
}

}  // namespace hearth::runtime
