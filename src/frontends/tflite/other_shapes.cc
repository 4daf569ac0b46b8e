// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/other_shapes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "graph/validated_model.h"
#include "ops/kv_layout.h"
#include "ops/specialized_model.h"

namespace hearth::tflite {
namespace {

using graph::Dimensions;

// The shapes of the clients' inputs and behind them those of the states.
std::vector<Dimensions> withStates(const graph::Model& model, std::span<const Dimensions> shapes) {
  std::vector<Dimensions> all(shapes.begin(), shapes.end());
  const graph::Subgraph& main = model.main();
  for (size_t i = all.size(); i < main.inputs.size(); ++i)
    all.push_back(main.operands[main.inputs[i]].dimensions);
  return all;
}

bool fits(const Dimensions& declared, const Dimensions& given) {
  if (declared.empty()) return true;
  if (declared.size() != given.size()) return false;
  for (size_t i = 0; i < declared.size(); ++i)
    if (declared[i] != 0 && declared[i] != given[i]) return false;
  return true;
}

// A model with unknown dimensions, which the shapes only complete.
Result<std::shared_ptr<const graph::Model>> complete(const graph::Model& model,
                                                     std::span<const Dimensions> shapes) {
  auto made = ops::specialize(model, withStates(model, shapes));
  if (made) return made->model;
  if (made.error().code() != ErrorCode::kUnsupported)
    return std::unexpected(std::move(made.error()));
  // Some shape depends on values: the rest stays as it is.
  auto open = std::make_shared<graph::Model>(model);
  for (size_t i = 0; i < shapes.size(); ++i) {
    graph::Operand& input = open->main().operands[open->main().inputs[i]];
    input.dimensions = shapes[i];
    input.isRankZeroTensor = shapes[i].empty();
  }
  return open;
}

Result<std::shared_ptr<const graph::Model>> modelFor(const ImportedGraph& graph,
                                                     std::span<const Dimensions> shapes) {
  bool isComplete = ops::hasUnknownInputs(*graph.model);
  std::vector<Dimensions> declared;
  for (size_t i = 0; i < shapes.size(); ++i) {
    isComplete = isComplete && fits(graph.inputs[i].dimensions, shapes[i]);
    declared.push_back(declaredShape(graph.inputs[i]));
  }
  if (isComplete) return complete(*graph.model, shapes);
  return ops::resize(*graph.model, declared, shapes);
}

// States that have more rows begin with more of the same.
void repeatInitialValues(const graph::Model& model, std::vector<graph::StatePair>* states) {
  for (graph::StatePair& state : *states) {
    std::vector<uint8_t>& value = state.initialValue;
    const auto bytes = graph::byteSize(model.main().operands[model.main().inputs[state.input]]);
    if (!bytes || value.empty() || *bytes % value.size() != 0) continue;
    const size_t once = value.size();
    for (uint64_t repeats = *bytes / once; repeats > 1; --repeats)
      value.insert(value.end(), value.begin(), value.begin() + static_cast<ptrdiff_t>(once));
  }
}

// Takes the model for the shapes.
void setModel(std::shared_ptr<const graph::Model> model, std::span<const Dimensions> shapes,
              ImportedGraph* graph) {
  graph->model = std::move(model);
  const graph::Subgraph& main = graph->model->main();
  for (size_t i = 0; i < shapes.size(); ++i) {
    graph->inputs[i].dimensions = shapes[i];
    graph->inputs[i].isRankZeroTensor = shapes[i].empty();
  }
  for (size_t i = 0; i < graph->outputs.size(); ++i) {
    const graph::Operand& output = main.operands[main.outputs[i]];
    graph->outputs[i].dimensions = output.dimensions;
    graph->outputs[i].isRankZeroTensor = output.isRankZeroTensor;
  }
  repeatInitialValues(*graph->model, &graph->states);
}

Status checkCount(std::span<const Dimensions> shapes, const ImportedGraph& graph) {
  if (shapes.size() == graph.inputs.size()) return {};
  return fail(ErrorCode::kBadData, "There are shapes of {} inputs, the model has {}.",
              shapes.size(), graph.inputs.size());
}

}  // namespace

Dimensions declaredShape(const TensorInfo& input) {
  const bool isOfAnyRank = input.dimensions.empty() && !input.isRankZeroTensor;
  return isOfAnyRank ? input.fileDimensions : input.defaultDimensions();
}

Status followShapes(std::span<const Dimensions> shapes, ImportedGraph* graph) {
  HEARTH_TRY(checkCount(shapes, *graph));
  HEARTH_ASSIGN(auto model, modelFor(*graph, shapes));
  setModel(std::move(model), shapes, graph);
  return {};
}

Status inferShapesAgain(std::span<const Dimensions> shapes, ImportedGraph* graph) {
  HEARTH_TRY(checkCount(shapes, *graph));
  HEARTH_ASSIGN(auto model, ops::inferAgain(*graph->model, shapes));
  setModel(std::move(model), shapes, graph);
  return {};
}

Result<bool> layOutCachesByToken(ImportedGraph* graph) {
  std::vector<ops::CachePair> pairs;
  for (size_t i = 0; i < graph->inputs.size(); ++i) {
    const auto output = std::ranges::find(graph->outputs, graph->inputs[i].name, &TensorInfo::name);
    if (output != graph->outputs.end())
      pairs.push_back(
          {static_cast<uint32_t>(i), static_cast<uint32_t>(output - graph->outputs.begin())});
  }
  if (pairs.empty()) return false;
  // A copy would be megabytes for each signature of a language model.
  graph::Model own = graph::ValidatedModel::release(std::exchange(graph->model, nullptr));
  HEARTH_ASSIGN(ops::ModelByToken made, ops::layOutByToken(std::move(own), pairs));
  graph->model = std::move(made.model);
  bool isAnyExchanged = false;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (!made.isExchanged[i]) continue;
    isAnyExchanged = true;
    for (TensorInfo* info : {&graph->inputs[pairs[i].input], &graph->outputs[pairs[i].output]}) {
      for (Dimensions* dimensions : {&info->dimensions, &info->fileDimensions})
        std::swap((*dimensions)[dimensions->size() - 2], dimensions->back());
    }
  }
  return isAnyExchanged;
}

}  // namespace hearth::tflite
