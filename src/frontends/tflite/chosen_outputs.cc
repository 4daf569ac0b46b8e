// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/chosen_outputs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/nearest_word.h"
#include "graph/validated_model.h"

namespace hearth::tflite {
namespace {

// Removes the operations of whose results nothing is read, in the end, by an output.
void removeUnread(graph::Subgraph* graph) {
  std::vector<bool> isRead(graph->operands.size(), false);
  for (const uint32_t output : graph->outputs) isRead[output] = true;
  std::vector<graph::Operation> kept;
  for (auto operation = graph->operations.rbegin(); operation != graph->operations.rend();
       ++operation) {
    if (std::ranges::none_of(operation->outputs, [&](uint32_t output) { return isRead[output]; }))
      continue;
    for (const uint32_t input : operation->inputs) isRead[input] = true;
    kept.push_back(std::move(*operation));
  }
  graph->operations.assign(std::make_move_iterator(kept.rbegin()),
                           std::make_move_iterator(kept.rend()));
}

std::unexpected<Error> noOutput(const char* name, const std::vector<TensorInfo>& outputs) {
  std::vector<std::string> names;
  for (const TensorInfo& output : outputs) names.push_back(output.name);
  const auto nearest = base::nearestWord(name, names);
  return fail(ErrorCode::kNotFound, "The model has no output \"{}\".{}", name,
              nearest ? base::formatText(" Did you mean \"{}\"?", *nearest) : "");
}

}  // namespace

Result<bool> chooseOutputs(std::span<const char* const> names, ImportedGraph* graph) {
  std::vector<bool> isChosen(graph->outputs.size(), false);
  for (const char* const name : names) {
    const auto found = std::ranges::find(graph->outputs, std::string(name), &TensorInfo::name);
    if (found == graph->outputs.end()) return noOutput(name, graph->outputs);
    isChosen[static_cast<size_t>(found - graph->outputs.begin())] = true;
  }
  if (std::ranges::all_of(isChosen, std::identity())) return false;
  // A copy would be megabytes for each signature of a language model.
  graph::Model own = graph::ValidatedModel::release(std::exchange(graph->model, nullptr));
  graph::Subgraph& main = own.main();
  std::vector<TensorInfo> infos;
  std::vector<uint32_t> outputs;
  for (size_t i = 0; i < main.outputs.size(); ++i) {
    const bool isState = i >= isChosen.size();
    if (!isState && !isChosen[i]) {
      main.operands[main.outputs[i]].lifetime = graph::Lifetime::kTemporary;
      continue;
    }
    if (!isState) infos.push_back(std::move(graph->outputs[i]));
    outputs.push_back(main.outputs[i]);
  }
  const auto left = static_cast<uint32_t>(isChosen.size() - infos.size());
  for (graph::StatePair& state : graph->states) state.output -= left;
  graph->outputs = std::move(infos);
  main.outputs = std::move(outputs);
  removeUnread(&main);
  // Runtime and driver would each check a model that is not known to be valid.
  HEARTH_ASSIGN(graph->model, graph::ValidatedModel::of(std::move(own)));
  return true;
}

}  // namespace hearth::tflite
