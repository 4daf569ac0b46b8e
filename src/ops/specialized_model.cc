// SPDX-License-Identifier: Apache-2.0
#include "ops/specialized_model.h"

#include <algorithm>
#include <utility>

#include "graph/validated_model.h"
#include "ops/specializer.h"

namespace hearth::ops {
namespace {

using graph::Lifetime;

// The model without the shapes that follow from those of its inputs.
graph::Model withoutShapes(const graph::Model& model, bool keepsRanks) {
  graph::Model made = model;
  for (graph::Subgraph& subgraph : made.subgraphs)
    for (graph::Operand& operand : subgraph.operands) {
      if (operand.isConstant() || !operand.hasValue() || operand.lifetime == Lifetime::kSubgraph)
        continue;
      if (keepsRanks)
        std::ranges::fill(operand.dimensions, 0u);
      else
        operand.dimensions.clear();
    }
  return made;
}

// By the rank of its output alone a FULLY_CONNECTED tells whether it keeps the dimensions.
void keepRanksOfLayers(const graph::Model& model, graph::Model* open) {
  for (size_t s = 0; s < model.subgraphs.size(); ++s) {
    const graph::Subgraph& subgraph = model.subgraphs[s];
    for (const graph::Operation& operation : subgraph.operations) {
      if (operation.type != OperationType::kFullyConnected || operation.inputs.empty() ||
          operation.outputs.empty())
        continue;
      const size_t rank = subgraph.operands[operation.outputs[0]].dimensions.size();
      if (rank != 2 && rank == subgraph.operands[operation.inputs[0]].dimensions.size())
        open->subgraphs[s].operands[operation.outputs[0]].dimensions.assign(rank, 0);
    }
  }
}

Result<std::shared_ptr<const graph::Model>> validated(graph::Model made,
                                                      const graph::Model& original) {
  // Kernels that read whole vectors need no copy of the last constant.
  constexpr size_t kRoom = 64;
  if (made.constantBytes.size() != original.constantBytes.size())
    made.constantBytes.resize(made.constantBytes.size() + kRoom);
  return graph::ValidatedModel::of(std::move(made));
}

}  // namespace

bool hasUnknownInputs(const graph::Model& model) {
  return std::ranges::any_of(model.main().inputs, [&](uint32_t input) {
    return !graph::isFullySpecified(model.main().operands[input]);
  });
}

Result<SpecializedModel> specialize(const graph::Model& model,
                                    std::span<const graph::Dimensions> inputs) {
  const auto made = std::make_shared<graph::Model>(model);
  uint32_t allowance = kMostNested;
  Specializer main(model, nullptr, 0, 0, true, &allowance, made.get());
  HEARTH_TRY(main.run(inputs));
  main.finish();
  return SpecializedModel{made, main.takeOperations()};
}

Result<PartlySpecializedModel> specializePartly(const graph::Model& model,
                                                std::span<const graph::Dimensions> inputs) {
  const auto made = std::make_shared<graph::Model>(model);
  uint32_t allowance = kMostNested;
  Specializer main(model, nullptr, 0, 0, true, &allowance, made.get());
  main.allowOpenShapes();
  main.keepRanks();
  HEARTH_TRY(main.run(inputs));
  main.finish();
  std::vector<uint32_t> open = main.takeOpenOperations();
  return PartlySpecializedModel{made, main.takeOperations(), std::move(open)};
}

Result<std::shared_ptr<const graph::Model>> resize(const graph::Model& model,
                                                   std::span<const Dimensions> before,
                                                   std::span<const Dimensions> now) {
  const graph::Subgraph& main = model.main();
  if (before.size() != now.size() || now.size() > main.inputs.size())
    return fail(ErrorCode::kBadData, "There are shapes of {} and {} inputs, the model has {}.",
                before.size(), now.size(), main.inputs.size());
  std::vector<Dimensions> all(before.begin(), before.end());
  for (size_t i = all.size(); i < main.inputs.size(); ++i)
    all.push_back(main.operands[main.inputs[i]].dimensions);
  HEARTH_ASSIGN(const SpecializedModel declared, specialize(model, all));
  std::ranges::copy(now, all.begin());
  const graph::Model open = withoutShapes(model, true);
  graph::Model made = open;
  uint32_t allowance = kMostNested;
  Specializer specializer(open, declared.model.get(), 0, 0, true, &allowance, &made);
  specializer.setFreeInputs(now.size());
  HEARTH_TRY(specializer.run(all));
  specializer.finish();
  return validated(std::move(made), model);
}

namespace {

// The model without the shapes of the file, and those of all its inputs in `inputs`, to which those
// of the states are added.
Result<graph::Model> withInputs(const graph::Model& model, std::vector<Dimensions>* inputs) {
  const graph::Subgraph& main = model.main();
  if (inputs->size() > main.inputs.size())
    return fail(ErrorCode::kBadData, "There are shapes of {} inputs, the model has {}.",
                inputs->size(), main.inputs.size());
  graph::Model open = withoutShapes(model, false);
  keepRanksOfLayers(model, &open);
  for (size_t i = 0; i < main.inputs.size(); ++i) {
    graph::Operand& input = open.main().operands[main.inputs[i]];
    if (i >= inputs->size()) inputs->push_back(main.operands[main.inputs[i]].dimensions);
    input.dimensions = (*inputs)[i];
    input.isRankZeroTensor = input.dimensions.empty() && !graph::isScalar(input.type);
  }
  return open;
}

}  // namespace

Result<std::shared_ptr<const graph::Model>> inferAgain(const graph::Model& model,
                                                       std::span<const Dimensions> inputs) {
  std::vector<Dimensions> all(inputs.begin(), inputs.end());
  HEARTH_ASSIGN(const graph::Model open, withInputs(model, &all));
  graph::Model made = open;
  uint32_t allowance = kMostNested;
  Specializer specializer(open, nullptr, 0, 0, true, &allowance, &made);
  specializer.allowOpenShapes();
  HEARTH_TRY(specializer.run(all));
  specializer.finish();
  return validated(std::move(made), model);
}

Result<std::vector<InferredOutput>> inferOutputs(const graph::Model& model,
                                                 std::span<const Dimensions> inputs) {
  std::vector<Dimensions> all(inputs.begin(), inputs.end());
  HEARTH_ASSIGN(const graph::Model open, withInputs(model, &all));
  graph::Model made = open;
  uint32_t allowance = kMostNested;
  Specializer specializer(open, nullptr, 0, 0, true, &allowance, &made);
  specializer.allowOpenShapes();
  specializer.allowEmptyInputs();
  HEARTH_TRY(specializer.run(all));
  HEARTH_TRY(specializer.checkOutputs());
  return specializer.outputs();
}

}  // namespace hearth::ops
