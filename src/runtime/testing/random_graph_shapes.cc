// SPDX-License-Identifier: Apache-2.0
#include "runtime/testing/random_graph_shapes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <utility>

#include "ops/operation.h"
#include "ops/real_values.h"
#include "ops/reference/kernels.h"

namespace hearth::runtime {
namespace {

using graph::Dimensions;
using graph::OperandType;
using Bytes = std::vector<uint8_t>;

bool isReal(OperandType type) {
  return type == OperandType::kTensorFloat32 || type == OperandType::kTensorFloat16 ||
         type == OperandType::kTensorQuant8Asymm || type == OperandType::kTensorQuant8AsymmSigned ||
         type == OperandType::kTensorQuant16Symm;
}

bool isNoLarger(const Dimensions& dimensions, const Dimensions& limits) {
  return std::ranges::equal(dimensions, limits,
                            [](uint32_t a, uint32_t b) { return 0 < a && a <= b; });
}

size_t bytesOf(const graph::Operand& operand) {
  size_t count = graph::elementSize(operand.type);
  for (const uint32_t dimension : operand.dimensions) count *= dimension;
  return count;
}

// Computes a graph with these dimensions of its inputs.
class Computation {
 public:
  Computation(const RandomGraph& graph, const std::vector<Dimensions>& inputs)
      : graph_(graph),
        model_(std::make_shared<graph::Model>(*graph.model)),
        values_(model_->main().operands.size()) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const uint32_t input = model_->main().inputs[i];
      graph::Operand& operand = model_->main().operands[input];
      operand.dimensions = inputs[i];
      // The first of its numbers, so none is greater than they are.
      values_[input] = graph.inputs[i];
      values_[input].resize(bytesOf(operand));
    }
  }

  // Nothing where an operation does not take such shapes, or the tolerances do not hold.
  std::optional<RandomGraph> run() {
    graph::Subgraph& main = model_->main();
    for (const graph::Operation& operation : main.operations)
      if (!compute(operation)) return std::nullopt;
    RandomGraph made;
    for (const uint32_t input : main.inputs) made.inputs.push_back(values_[input]);
    for (const uint32_t output : main.outputs) made.outputs.push_back(values_[output]);
    made.tolerances = graph_.tolerances;
    made.limits = graph_.limits;
    made.model = std::move(model_);
    return made;
  }

 private:
  bool compute(const graph::Operation& operation) {
    graph::Subgraph& main = model_->main();
    for (const uint32_t output : operation.outputs) main.operands[output].dimensions.clear();
    const ops::OperationDefinition* definition = ops::findOperation(operation.type);
    if (!definition->validate(*model_, main, operation)) return false;
    ops::OperationContext context = ops::makeContext(*model_, main, operation);
    for (size_t i = 0; i < operation.inputs.size(); ++i) {
      const graph::Operand& operand = main.operands[operation.inputs[i]];
      if (operand.isConstant() || !operand.hasValue()) continue;
      context.inputs[i].data = values_[operation.inputs[i]].data();
    }
    if (!definition->prepare(context)) return false;
    for (size_t i = 0; i < operation.outputs.size(); ++i) {
      const uint32_t output = operation.outputs[i];
      graph::Operand& operand = main.operands[output];
      operand.dimensions = context.outputs[i].dimensions;
      if (!isNoLarger(operand.dimensions, graph_.model->main().operands[output].dimensions))
        return false;
      values_[output].resize(bytesOf(operand));
      context.outputs[i].data = values_[output].data();
    }
    // A list of indices may go beyond the smaller dimension.
    if (!ops::reference::findKernel(operation.type)(context)) return false;
    for (size_t i = 0; i < operation.outputs.size(); ++i) {
      if (!isReal(main.operands[operation.outputs[i]].type)) continue;
      const double limit = graph_.limits[operation.outputs[i]];
      for (const float value : ops::RealInput(context.outputs[i]))
        if (!(std::abs(double{value}) <= limit)) return false;
    }
    return true;
  }

  const RandomGraph& graph_;
  std::shared_ptr<graph::Model> model_;
  std::vector<Bytes> values_;  // by operand
};

std::vector<Dimensions> inputShapes(const graph::Model& model) {
  std::vector<Dimensions> shapes;
  for (const uint32_t input : model.main().inputs)
    shapes.push_back(model.main().operands[input].dimensions);
  return shapes;
}

// All ways to make one dimension smaller: of one input, of all inputs that have it at this place,
// or wherever inputs have it.
std::vector<std::vector<Dimensions>> smallerShapes(const std::vector<Dimensions>& shapes) {
  std::vector<std::vector<Dimensions>> all;
  const auto add = [&](uint32_t size, uint32_t smaller, const auto& isChanged) {
    std::vector<Dimensions> changed = shapes;
    for (size_t i = 0; i < shapes.size(); ++i)
      for (size_t d = 0; d < shapes[i].size(); ++d)
        if (shapes[i][d] == size && isChanged(i, d)) changed[i][d] = smaller;
    if (!std::ranges::contains(all, changed)) all.push_back(std::move(changed));
  };
  for (size_t i = 0; i < shapes.size(); ++i)
    for (size_t d = 0; d < shapes[i].size(); ++d)
      for (uint32_t smaller = 1; smaller < shapes[i][d]; ++smaller) {
        const uint32_t size = shapes[i][d];
        add(size, smaller, [](size_t, size_t) { return true; });
        add(size, smaller, [&](size_t, size_t dimension) { return dimension == d; });
        add(size, smaller,
            [&](size_t input, size_t dimension) { return input == i && dimension == d; });
      }
  return all;
}

}  // namespace

std::vector<RandomGraph> inSmallerShapes(const RandomGraph& graph, uint64_t seed, size_t most) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<Dimensions>> candidates = smallerShapes(inputShapes(*graph.model));
  std::ranges::shuffle(candidates, random);
  std::vector<RandomGraph> made;
  for (const std::vector<Dimensions>& inputs : candidates) {
    if (made.size() == most) break;
    if (auto other = Computation(graph, inputs).run()) made.push_back(*std::move(other));
  }
  return made;
}

std::shared_ptr<const graph::Model> ofUnknownShapes(const std::vector<RandomGraph>& graphs,
                                                    uint64_t seed) {
  std::mt19937_64 random(seed);
  auto model = std::make_shared<graph::Model>(*graphs.front().model);
  for (size_t s = 0; s < model->subgraphs.size(); ++s)
    for (size_t k = 0; k < model->subgraphs[s].operands.size(); ++k) {
      graph::Operand& operand = model->subgraphs[s].operands[k];
      if (operand.isConstant() || !operand.hasValue() || operand.dimensions.empty()) continue;
      if (random() % 4 == 0) {
        operand.dimensions.clear();
        continue;
      }
      for (size_t d = 0; d < operand.dimensions.size(); ++d) {
        const bool differs = std::ranges::any_of(graphs, [&](const RandomGraph& other) {
          return other.model->subgraphs[s].operands[k].dimensions[d] != operand.dimensions[d];
        });
        if (differs || random() % 2 == 0) operand.dimensions[d] = 0;
      }
    }
  return model;
}

}  // namespace hearth::runtime
