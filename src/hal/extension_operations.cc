// SPDX-License-Identifier: Apache-2.0
#include "hal/extension_operations.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/format.h"
#include "hal/device_operators.h"
#include "ops/custom_operator.h"

namespace hearth::hal {
namespace {

using graph::OperandType;
using graph::OperationType;

// Says which operations of a model a device cannot take.
class MissingExtensions {
 public:
  MissingExtensions(const graph::Model& model, std::vector<std::string> known)
      : model_(model), known_(std::move(known)) {}

  // Why the device does not take the operation itself; empty if nothing speaks against it.
  std::string reasonAgainst(const graph::Subgraph& subgraph,
                            const graph::Operation& operation) const {
    if (operation.type == OperationType::kCustom)
      return reasonAgainst(ops::operatorName(model_, subgraph, operation));
    std::string reason;
    if (graph::isDriverCode(operation.type))
      reason = reasonAgainst(static_cast<int32_t>(operation.type));
    for (const auto* list : {&operation.inputs, &operation.outputs})
      for (const uint32_t index : *list)
        if (reason.empty()) reason = reasonAgainst(subgraph.operands[index].type);
    return reason;
  }

  // The same for all operations of all subgraphs but the main one.
  std::string reasonAgainstNested() const {
    for (size_t i = 1; i < model_.subgraphs.size(); ++i)
      for (const graph::Operation& operation : model_.subgraphs[i].operations)
        if (std::string reason = reasonAgainst(model_.subgraphs[i], operation); !reason.empty())
          return reason;
    return "";
  }

 private:
  std::string reasonAgainst(OperandType type) const {
    if (type == OperandType::kTensorString && !isKnown(kStringExtensionName))
      return "The device is outside this process, which strings do not leave.";
    return graph::isDriverCode(type) ? reasonAgainst(static_cast<int32_t>(type)) : "";
  }

  std::string reasonAgainst(const std::string& customOperator) const {
    const ops::CustomOperator* const found = ops::findCustomOperator(customOperator);
    if (found == nullptr || !found->isOfDevice())
      return isKnown(kCustomExtensionName) ? ""
                                           : "The device does not run operators of the program.";
    if (isKnown(deviceOperatorExtension(customOperator))) return "";
    return base::formatText(
        "Only a device whose manifest names the custom operator \"{}\" computes it.",
        customOperator);
  }

  bool isKnown(std::string_view name) const {
    return std::ranges::find(known_, name) != known_.end();
  }

  std::string reasonAgainst(int32_t code) const {
    const graph::Extension* const extension = model_.findExtension(code);
    if (extension != nullptr && isKnown(extension->name)) return "";
    return base::formatText("The device does not have the extension \"{}\".",
                            extension != nullptr ? extension->name : "");
  }

  const graph::Model& model_;
  const std::vector<std::string> known_;
};

bool hasCustom(const graph::Subgraph& subgraph) {
  return std::ranges::find(subgraph.operations, OperationType::kCustom, &graph::Operation::type) !=
         subgraph.operations.end();
}

bool hasStrings(const graph::Subgraph& subgraph) {
  return std::ranges::find(subgraph.operands, OperandType::kTensorString, &graph::Operand::type) !=
         subgraph.operands.end();
}

}  // namespace

void leaveOutExtensionOperations(const Device& device, const graph::Model& model,
                                 std::vector<OperationSupport>* support) {
  const std::vector<graph::Operation>& operations = model.main().operations;
  if (support->size() != operations.size()) return;
  if (model.extensions.empty() && std::ranges::none_of(model.subgraphs, hasCustom) &&
      std::ranges::none_of(model.subgraphs, hasStrings))
    return;
  const MissingExtensions missing(model, device.supportedExtensions());
  const std::string nested = missing.reasonAgainstNested();
  for (size_t i = 0; i < operations.size(); ++i) {
    const bool isControlFlow =
        operations[i].type == OperationType::kIf || operations[i].type == OperationType::kWhile;
    std::string reason = missing.reasonAgainst(model.main(), operations[i]);
    if (reason.empty() && isControlFlow) reason = nested;
    if (!reason.empty()) (*support)[i] = {false, "", std::move(reason)};
  }
}

}  // namespace hearth::hal
