// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/slow_operations.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "graph/codes.h"

namespace hearth::cpu {
namespace {

constexpr size_t kMostNamed = 8;

std::string describeOperation(const graph::Subgraph& main, const Node& node) {
  const uint32_t index = node.operation;
  const graph::Operation& operation = main.operations[index];
  std::string text = base::formatText("{} {}", graph::nameOf(operation.type), index);
  if (!operation.name.empty()) text += base::formatText(" \"{}\"", operation.name);
  text += " (";
  for (size_t i = 0; i < std::min<size_t>(operation.inputs.size(), 2); ++i) {
    const graph::Operand& input = main.operands[operation.inputs[i]];
    if (!input.hasValue()) continue;
    text += base::formatText("{}{}", i == 0 ? "" : ", ", graph::describe(input));
  }
  return text + base::formatText(": {})", node.whySlow);
}

}  // namespace

std::string describeSlowOperations(const graph::Model& model, const Plan& plan) {
  std::vector<const Node*> slow;
  for (const Node& node : plan.nodes)
    if (std::string_view(node.kernel) == "reference" &&
        (slow.empty() || slow.back()->operation != node.operation))
      slow.push_back(&node);
  if (slow.empty()) return {};
  std::string text = base::formatText("{} of {} operations run on a slow kernel: ", slow.size(),
                                      model.main().operations.size());
  for (size_t i = 0; i < std::min(slow.size(), kMostNamed); ++i)
    text += base::formatText("{}{}", i == 0 ? "" : "; ", describeOperation(model.main(), *slow[i]));
  return text + (slow.size() > kMostNamed ? "; and others." : ".");
}

}  // namespace hearth::cpu
