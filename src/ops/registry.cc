// SPDX-License-Identifier: Apache-2.0
// The list of all operations, each of which is defined in the file of its family.
#include "ops/registry.h"

#include <algorithm>
#include <vector>

#include "base/immortal.h"
#include "graph/validated_model.h"
#include "ops/validation.h"

namespace hearth::ops {

std::span<const OperationDefinition* const> allOperations() {
  static constinit base::Immortal<std::vector<const OperationDefinition*>> operations;
  return operations.get([] {
    std::vector<const OperationDefinition*> list = {
#define HEARTH_OPERATION(name) &k##name##Operation,
#include "ops/registry.inc"
#undef HEARTH_OPERATION
    };
    std::sort(list.begin(), list.end(),
              [](const auto* a, const auto* b) { return a->type < b->type; });
    return list;
  });
}

const OperationDefinition* findOperation(OperationType type) {
  const auto list = allOperations();
  const auto it = std::lower_bound(
      list.begin(), list.end(), type,
      [](const OperationDefinition* definition, OperationType t) { return definition->type < t; });
  return it != list.end() && (*it)->type == type ? *it : nullptr;
}

Status OperationDefinition::validate(const graph::Model& model, const graph::Subgraph& subgraph,
                                     const graph::Operation& operation) const {
  return check(Signature(model, subgraph, operation));
}

Status validateOperationsOnce(const graph::Model& model) {
  const graph::ValidatedModel* const validated = graph::ValidatedModel::from(model);
  if (validated != nullptr && validated->areOperationsValid()) return {};
  HEARTH_TRY(validateOperations(model));
  if (validated != nullptr) validated->setOperationsValid();
  return {};
}

namespace {

Status validateOperations(const graph::Model& model, bool exceptDrivers) {
  for (size_t g = 0; g < model.subgraphs.size(); ++g) {
    const graph::Subgraph& subgraph = model.subgraphs[g];
    for (size_t i = 0; i < subgraph.operations.size(); ++i) {
      const graph::Operation& operation = subgraph.operations[i];
      if (exceptDrivers && graph::isDriverCode(operation.type)) continue;
      const OperationDefinition* definition = findOperation(operation.type);
      if (definition == nullptr)
        return fail(ErrorCode::kUnsupported,
                    "Operation {} of subgraph {} is {}, which has no kernel.", i, g,
                    graph::nameOf(operation.type));
      HEARTH_TRY_CONTEXT(definition->validate(model, subgraph, operation),
                         "while validating operation {} of subgraph {}", i, g);
    }
  }
  return {};
}

}  // namespace

Status validateOperations(const graph::Model& model) {
  return validateOperations(model, false);
}

Status validateOperationsExceptDrivers(const graph::Model& model) {
  return validateOperations(model, true);
}

}  // namespace hearth::ops
