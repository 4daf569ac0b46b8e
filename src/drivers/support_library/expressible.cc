// SPDX-License-Identifier: Apache-2.0
#include "drivers/support_library/expressible.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/format.h"
#include "graph/rank_zero.h"
#include "hal/operation_check.h"
#include "ops/nnapi_limits.h"

namespace hearth::drivers::support_library {
namespace {

using graph::Lifetime;
using graph::OperationType;

// The levels 1 to 7 of a code, from NNAPI's 27..31, 1000006 and 1000007.
int32_t levelNumber(int64_t featureLevel) {
  return static_cast<int32_t>(featureLevel >= 1000000 ? featureLevel - 1000000 : featureLevel - 26);
}

class Expressing {
 public:
  Expressing(const graph::Model& model, const DeviceTerms& terms)
      : model_(model), terms_(terms), level_(levelNumber(terms.featureLevel)) {}

  std::string reasonAgainst(const graph::Subgraph& subgraph, const graph::Operation& operation) {
    if (operation.type == OperationType::kCustom)
      return "The device does not run operators of the program.";
    const graph::OperationTypeInfo* const known = graph::findOperationType(operation.type);
    std::string reason =
        reasonAgainst(static_cast<int32_t>(operation.type),
                      known != nullptr ? known->featureLevel : 0, graph::nameOf(operation.type));
    for (const auto* list : {&operation.inputs, &operation.outputs})
      for (const uint32_t index : *list)
        if (reason.empty()) reason = reasonAgainst(subgraph.operands[index], operation.type);
    const bool isNnapis = (static_cast<int32_t>(operation.type) >> 16) == 0;
    if (!reason.empty() || !isNnapis) return reason;
    const Status limits = ops::checkNnapiLimits(subgraph, operation);
    return limits ? "" : limits.error().toString();
  }

 private:
  // Of an operation or operand type. The level is 0 for types of extensions.
  std::string reasonAgainst(int32_t code, int32_t level, const std::string& name) const {
    std::optional<std::string_view> extension;
    if (graph::isDriverCode(code)) {
      const graph::Extension* const found = model_.findExtension(code);
      extension = found != nullptr ? found->name : std::string_view();
    } else if ((code >> 16) == graph::kTfliteExtensionPrefix) {
      extension = graph::kTfliteExtensionName;
    }
    if (extension) {
      if (std::ranges::contains(terms_.extensions, *extension)) return "";
      return base::formatText("The support library does not have the extension \"{}\" of {}.",
                              *extension, name);
    }
    if (level >= 1 && level <= level_) return "";
    return base::formatText("{} is of NNAPI's feature level {}, the support library of {}.", name,
                            level, level_);
  }

  std::string reasonAgainst(const graph::Operand& operand, OperationType user) {
    if (operand.type == graph::OperandType::kTensorString)
      return "The device is outside this process, which strings do not leave.";
    const graph::OperandTypeInfo* const known = graph::findOperandType(operand.type);
    std::string reason =
        reasonAgainst(static_cast<int32_t>(operand.type),
                      known != nullptr ? known->featureLevel : 0, graph::nameOf(operand.type));
    if (!reason.empty()) return reason;
    const bool isLiftable = operand.isConstant() && graph::ignoresRankOfOneElement(user);
    if (operand.isRankZeroTensor && !graph::isDriverCode(operand.type) && !isLiftable)
      return base::formatText("{} has a tensor of rank 0, which NNAPI lacks.", graph::nameOf(user));
    if (operand.lifetime == Lifetime::kSubgraph) return reasonAgainst(operand.subgraphIndex);
    return "";
  }

  // Of a subgraph, in which validate() has found no cycle.
  std::string reasonAgainst(uint32_t subgraph) {
    if (nested_.empty()) nested_.resize(model_.subgraphs.size());
    if (!nested_[subgraph]) {
      std::string reason;
      for (const graph::Operation& operation : model_.subgraphs[subgraph].operations)
        if (reason.empty()) reason = reasonAgainst(model_.subgraphs[subgraph], operation);
      nested_[subgraph] = std::move(reason);
    }
    return *nested_[subgraph];
  }

  const graph::Model& model_;
  const DeviceTerms& terms_;
  const int32_t level_;
  std::vector<std::optional<std::string>> nested_;
};

}  // namespace

std::vector<std::string> inexpressibleOperations(const graph::Model& model,
                                                 const DeviceTerms& terms) {
  // Libraries are not asked about operations that are wrong, also in subgraphs.
  const std::vector<hal::OperationSupport> valid = hal::checkOperations(model);
  Expressing expressing(model, terms);
  std::vector<std::string> reasons;
  for (size_t i = 0; i < valid.size(); ++i) {
    const graph::Operation& operation = model.main().operations[i];
    const bool isJudgedHere = !graph::isDriverCode(operation.type);
    if (isJudgedHere && !valid[i].supported)
      reasons.push_back(valid[i].reason);
    else
      reasons.push_back(expressing.reasonAgainst(model.main(), operation));
  }
  return reasons;
}

graph::Model withoutOperations(const graph::Model& model, const std::vector<std::string>& left) {
  graph::Model rest = model;
  graph::Subgraph& main = rest.main();
  struct Use {
    bool isRead = false;
    bool isWritten = false;
    bool isReadOutside = false;
  };
  std::vector<Use> uses(main.operands.size());
  std::vector<graph::Operation> kept;
  for (size_t i = 0; i < left.size(); ++i) {
    const graph::Operation& operation = model.main().operations[i];
    for (const uint32_t index : operation.inputs)
      (left[i].empty() ? uses[index].isRead : uses[index].isReadOutside) = true;
    if (!left[i].empty()) continue;
    for (const uint32_t index : operation.outputs) uses[index].isWritten = true;
    kept.push_back(operation);
  }
  main.operations = std::move(kept);
  main.inputs.clear();
  main.outputs.clear();
  for (uint32_t i = 0; i < main.operands.size(); ++i) {
    graph::Operand& operand = main.operands[i];
    if (operand.isConstant() || !operand.hasValue() || operand.lifetime == Lifetime::kSubgraph)
      continue;
    const bool wasOutput = operand.lifetime == Lifetime::kSubgraphOutput;
    operand.lifetime = Lifetime::kTemporary;
    if (uses[i].isWritten && (wasOutput || uses[i].isReadOutside || !uses[i].isRead)) {
      operand.lifetime = Lifetime::kSubgraphOutput;
      main.outputs.push_back(i);
    } else if (!uses[i].isWritten && uses[i].isRead) {
      operand.lifetime = Lifetime::kSubgraphInput;
      main.inputs.push_back(i);
    }
  }
  return rest;
}

}  // namespace hearth::drivers::support_library
