// SPDX-License-Identifier: Apache-2.0
#include "hal/operation_check.h"

#include <memory>

#include "ops/operation.h"

namespace hearth::hal {
namespace {

Status checkOperation(const graph::Model& model, const graph::Subgraph& subgraph,
                      const graph::Operation& operation) {
  const ops::OperationDefinition* definition = ops::findOperation(operation.type);
  if (definition == nullptr)
    return fail(ErrorCode::kUnsupported, "{} has no kernel.", graph::nameOf(operation.type));
  return definition->validate(model, subgraph, operation);
}

// Answers for the subgraphs that operations refer to; looks at each subgraph once.
class SubgraphCheck {
 public:
  explicit SubgraphCheck(const graph::Model& model)
      : model_(model), checks_(model.subgraphs.size()) {}

  // The error of the first unsupported operation in the subgraphs of `operation`, or success.
  Status check(const graph::Operation& operation) {
    std::vector<uint32_t> pending;
    collect(model_.main(), operation, &pending);
    std::vector<bool> isQueued(model_.subgraphs.size());
    for (size_t i = 0; i < pending.size(); ++i) {
      if (isQueued[pending[i]]) continue;
      isQueued[pending[i]] = true;
      const graph::Subgraph& subgraph = model_.subgraphs[pending[i]];
      HEARTH_TRY(checkSubgraph(pending[i]));
      for (const graph::Operation& inner : subgraph.operations) collect(subgraph, inner, &pending);
    }
    return {};
  }

 private:
  static void collect(const graph::Subgraph& subgraph, const graph::Operation& operation,
                      std::vector<uint32_t>* pending) {
    for (uint32_t index : operation.inputs)
      if (subgraph.operands[index].lifetime == graph::Lifetime::kSubgraph)
        pending->push_back(subgraph.operands[index].subgraphIndex);
  }

  Status checkSubgraph(uint32_t index) {
    if (!checks_[index]) {
      checks_[index] = std::make_unique<Status>();
      const graph::Subgraph& subgraph = model_.subgraphs[index];
      for (const graph::Operation& operation : subgraph.operations) {
        *checks_[index] = checkOperation(model_, subgraph, operation);
        if (!*checks_[index]) break;
      }
    }
    return *checks_[index];
  }

  const graph::Model& model_;
  std::vector<std::unique_ptr<Status>> checks_;
};

}  // namespace

std::vector<OperationSupport> checkOperations(const graph::Model& model) {
  SubgraphCheck nested(model);
  std::vector<OperationSupport> supports;
  for (const graph::Operation& operation : model.main().operations) {
    Status status = checkOperation(model, model.main(), operation);
    if (status) status = nested.check(operation);
    if (status)
      supports.push_back({true, "reference", ""});
    else
      supports.push_back({false, "", status.error().toString()});
  }
  return supports;
}

}  // namespace hearth::hal
