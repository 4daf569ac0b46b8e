// SPDX-License-Identifier: Apache-2.0
#include "hal/custom_operations.h"

#include <algorithm>
#include <string>

namespace hearth::hal {
namespace {

using graph::OperationType;

bool isCustom(const graph::Operation& operation) {
  return operation.type == OperationType::kCustom;
}

}  // namespace

void leaveOutCustomOperations(const Device& device, const graph::Model& model,
                              std::vector<OperationSupport>* support) {
  const std::vector<graph::Operation>& operations = model.main().operations;
  const auto hasCustom = [](const graph::Subgraph& subgraph) {
    return std::ranges::any_of(subgraph.operations, isCustom);
  };
  if (support->size() != operations.size() || std::ranges::none_of(model.subgraphs, hasCustom))
    return;
  const std::vector<std::string> extensions = device.supportedExtensions();
  if (std::ranges::find(extensions, kCustomExtensionName) != extensions.end()) return;
  const bool isNested = std::any_of(model.subgraphs.begin() + 1, model.subgraphs.end(), hasCustom);
  for (size_t i = 0; i < operations.size(); ++i) {
    const bool isControlFlow =
        operations[i].type == OperationType::kIf || operations[i].type == OperationType::kWhile;
    if (isCustom(operations[i]) || (isControlFlow && isNested))
      (*support)[i] = {false, "", "The device does not run operators of the program."};
  }
}

}  // namespace hearth::hal
