// SPDX-License-Identifier: Apache-2.0
#include "ops/branch_constants.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "ops/control_flow.h"
#include "ops/operation.h"

namespace hearth::ops {
namespace {

using graph::Lifetime;
using graph::Operand;
using graph::Operation;
using graph::OperationType;
using graph::Subgraph;

// How many operations refer to each subgraph.
std::vector<uint32_t> usesOfSubgraphs(const graph::Model& model) {
  std::vector<uint32_t> uses(model.subgraphs.size());
  for (const Subgraph& subgraph : model.subgraphs)
    for (const Operation& operation : subgraph.operations)
      for (const uint32_t input : operation.inputs)
        if (subgraph.operands[input].lifetime == Lifetime::kSubgraph)
          ++uses[subgraph.operands[input].subgraphIndex];
  return uses;
}

// The two branches of an IF.
std::array<uint32_t, 2> branchesOf(const Subgraph& subgraph, const Operation& operation) {
  return {subgraph.operands[operation.inputs[kIfThen]].subgraphIndex,
          subgraph.operands[operation.inputs[kIfElse]].subgraphIndex};
}

// Whether the input `index` of a branch may become this constant.
bool mayBecome(const Subgraph& branch, size_t index, const Operand& constant) {
  const Operand& input = branch.operands[branch.inputs[index]];
  return input.type == constant.type &&
         (input.dimensions == constant.dimensions || !graph::isFullySpecified(input)) &&
         input.scale == constant.scale && input.zeroPoint == constant.zeroPoint;
}

// Calls change(operation, branches, input of the branches, constant) for what may be changed.
template <typename Change>
void forBranchConstants(const graph::Model& model, const Change& change) {
  const std::vector<uint32_t> uses = usesOfSubgraphs(model);
  for (uint32_t s = 0; s < model.subgraphs.size(); ++s) {
    for (uint32_t o = 0; o < model.subgraphs[s].operations.size(); ++o) {
      const Subgraph& subgraph = model.subgraphs[s];
      const Operation& operation = subgraph.operations[o];
      if (operation.type != OperationType::kIf) continue;
      const std::array<uint32_t, 2> branches = branchesOf(subgraph, operation);
      const size_t count = operation.inputs.size() - kIfFirstInput;
      if (std::ranges::any_of(branches, [&](uint32_t branch) {
            return uses[branch] != 1 || model.subgraphs[branch].inputs.size() != count;
          }))
        continue;
      // From the last one on, since a change removes it.
      for (size_t i = count; i-- > 0;) {
        const Operand& given = subgraph.operands[operation.inputs[kIfFirstInput + i]];
        if (given.isConstant() && std::ranges::all_of(branches, [&](uint32_t branch) {
              return mayBecome(model.subgraphs[branch], i, given);
            }))
          change(s, o, branches, i);
      }
    }
  }
}

}  // namespace

std::shared_ptr<const graph::Model> withBranchConstants(std::shared_ptr<const graph::Model> model) {
  bool isChanged = false;
  forBranchConstants(*model, [&](auto...) { isChanged = true; });
  if (!isChanged) return model;
  const auto made = std::make_shared<graph::Model>(*model);
  forBranchConstants(*made, [&](uint32_t s, uint32_t o, const std::array<uint32_t, 2>& branches,
                                size_t input) {
    Operation& operation = made->subgraphs[s].operations[o];
    const auto argument = static_cast<ptrdiff_t>(kIfFirstInput + input);
    const Operand constant = made->subgraphs[s].operands[operation.inputs[kIfFirstInput + input]];
    operation.inputs.erase(operation.inputs.begin() + argument);
    for (const uint32_t index : branches) {
      Subgraph& branch = made->subgraphs[index];
      branch.operands[branch.inputs[input]] = constant;
      branch.inputs.erase(branch.inputs.begin() + static_cast<ptrdiff_t>(input));
    }
  });
  // What holds for an argument may not hold for a constant, such as a limit on its values.
  if (!graph::validate(*made) || !validateOperations(*made)) return model;
  return made;
}

}  // namespace hearth::ops
