// SPDX-License-Identifier: Apache-2.0
#include "runtime/testing/random_graph_forms.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <utility>

namespace hearth::runtime {
namespace {

using graph::Lifetime;
using graph::OperandType;
using graph::OperationType;

uint32_t add(graph::Subgraph* subgraph, graph::Operand operand, Lifetime lifetime) {
  operand.lifetime = lifetime;
  operand.location = {};
  subgraph->operands.push_back(std::move(operand));
  return static_cast<uint32_t>(subgraph->operands.size() - 1);
}

uint32_t addReference(graph::Subgraph* subgraph, uint32_t target) {
  graph::Operand operand;
  operand.type = OperandType::kModel;
  operand.subgraphIndex = target;
  return add(subgraph, std::move(operand), Lifetime::kSubgraph);
}

graph::Operand number() {
  graph::Operand operand;
  operand.type = OperandType::kTensorInt32;
  operand.dimensions = {1};
  return operand;
}

graph::Operand truth() {
  graph::Operand operand = number();
  operand.type = OperandType::kTensorBool8;
  return operand;
}

uint32_t addConstant(graph::Model* model, graph::Subgraph* subgraph, graph::Operand operand,
                     int32_t value) {
  const uint32_t index = add(subgraph, std::move(operand), Lifetime::kConstantCopy);
  std::vector<uint8_t>& all = model->constantBytes;
  all.resize((all.size() + 7) / 8 * 8);
  subgraph->operands[index].location = {0, all.size(), sizeof value};
  const auto* const from = reinterpret_cast<const uint8_t*>(&value);
  all.insert(all.end(), from, from + sizeof value);
  return index;
}

graph::Operand scalarNumber() {
  graph::Operand operand;
  operand.type = OperandType::kInt32;
  return operand;
}

bool canBeReshaped(const graph::Operand& operand) {
  if (operand.isConstant() || !operand.hasValue() || operand.dimensions.empty()) return false;
  switch (operand.type) {
    case OperandType::kTensorFloat32:
    case OperandType::kTensorFloat16:
    case OperandType::kTensorInt32:
    case OperandType::kTensorQuant8Asymm:
    case OperandType::kTensorQuant8AsymmSigned:
      return true;
    default:
      return false;
  }
}

}  // namespace

RandomGraph withUnknownShapes(const RandomGraph& graph, uint64_t seed) {
  std::mt19937_64 random(seed);
  auto model = std::make_shared<graph::Model>(*graph.model);
  for (graph::Operand& operand : model->main().operands) {
    if (operand.isConstant() || !operand.hasValue() || operand.dimensions.empty()) continue;
    const bool isInput = operand.lifetime == Lifetime::kSubgraphInput;
    switch (random() % 4) {
      case 0:
        if (isInput) break;
        [[fallthrough]];
      case 1:
        operand.dimensions.clear();
        break;
      default:
        for (uint32_t& dimension : operand.dimensions)
          if (!isInput || random() % 2 == 0) dimension = 0;
    }
  }
  RandomGraph made = graph;
  made.model = std::move(model);
  return made;
}

std::optional<RandomGraph> withComputedShapes(const RandomGraph& graph, uint64_t seed) {
  std::mt19937_64 random(seed);
  auto model = std::make_shared<graph::Model>(*graph.model);
  graph::Subgraph& main = model->main();
  RandomGraph made = graph;
  std::vector<uint32_t> candidates;
  for (uint32_t k = 0; k < main.operands.size(); ++k)
    if (const graph::Operand& operand = main.operands[k];
        canBeReshaped(operand) && std::ranges::any_of(main.operations, [&](const auto& operation) {
          return std::ranges::contains(operation.inputs, k);
        }))
      candidates.push_back(k);
  if (candidates.empty()) return std::nullopt;
  std::ranges::shuffle(candidates, random);
  candidates.resize(std::min<size_t>(candidates.size(), 1 + random() % 3));
  for (const uint32_t tensor : candidates) {
    const graph::Operand operand = main.operands[tensor];
    const uint32_t copy = add(&main, operand, Lifetime::kTemporary);
    graph::Operand list = number();
    list.dimensions = {static_cast<uint32_t>(operand.dimensions.size())};
    main.inputs.push_back(add(&main, list, Lifetime::kSubgraphInput));
    std::vector<uint8_t> shape(operand.dimensions.size() * sizeof(int32_t));
    std::memcpy(shape.data(), operand.dimensions.data(), shape.size());
    made.inputs.push_back(std::move(shape));
    for (graph::Operation& operation : main.operations)
      std::ranges::replace(operation.inputs, tensor, copy);
    const auto writer = std::ranges::find_if(main.operations, [&](const auto& operation) {
      return std::ranges::contains(operation.outputs, tensor);
    });
    graph::Operation reshape;
    reshape.type = OperationType::kReshape;
    reshape.inputs = {tensor, main.inputs.back()};
    reshape.outputs = {copy};
    main.operations.insert(writer == main.operations.end() ? main.operations.begin() : writer + 1,
                           std::move(reshape));
  }
  for (graph::Operand& operand : main.operands)
    if (operand.lifetime == Lifetime::kTemporary || operand.lifetime == Lifetime::kSubgraphOutput)
      std::ranges::fill(operand.dimensions, 0u);
  made.model = std::move(model);
  return made;
}

RandomGraph inBranches(const RandomGraph& graph) {
  auto model = std::make_shared<graph::Model>(*graph.model);
  const graph::Subgraph body = model->main();
  model->subgraphs.push_back(body);
  model->subgraphs.push_back(body);
  graph::Subgraph main;
  graph::Operation branch;
  branch.type = OperationType::kIf;
  main.inputs = {add(&main, truth(), Lifetime::kSubgraphInput)};
  branch.inputs = {main.inputs[0], addReference(&main, 1), addReference(&main, 2)};
  for (const uint32_t input : body.inputs) {
    main.inputs.push_back(add(&main, body.operands[input], Lifetime::kSubgraphInput));
    branch.inputs.push_back(main.inputs.back());
  }
  for (const uint32_t output : body.outputs)
    main.outputs.push_back(add(&main, body.operands[output], Lifetime::kSubgraphOutput));
  branch.outputs = main.outputs;
  main.operations = {std::move(branch)};
  model->subgraphs[0] = std::move(main);
  RandomGraph made = graph;
  made.model = std::move(model);
  made.inputs.insert(made.inputs.begin(), {uint8_t{1}});
  return made;
}

// The state of the loop: the outputs, how often the body has run, and the inputs, which stay.
RandomGraph inLoop(const RandomGraph& graph) {
  auto model = std::make_shared<graph::Model>(*graph.model);
  graph::Subgraph body = model->main();
  const std::vector<uint32_t> inputs = body.inputs;
  const std::vector<uint32_t> outputs = body.outputs;
  graph::Subgraph condition;
  graph::Subgraph main;
  graph::Operation loop;
  loop.type = OperationType::kWhile;
  loop.inputs = {addReference(&main, 1), addReference(&main, 2)};
  body.inputs.clear();
  const auto addState = [&](const graph::Operand& operand) {
    condition.inputs.push_back(add(&condition, operand, Lifetime::kSubgraphInput));
    body.inputs.push_back(add(&body, operand, Lifetime::kSubgraphInput));
  };
  for (const uint32_t output : outputs) {
    const graph::Operand operand = body.operands[output];
    addState(operand);
    main.inputs.push_back(add(&main, operand, Lifetime::kSubgraphInput));
    loop.inputs.push_back(main.inputs.back());
    main.outputs.push_back(add(&main, operand, Lifetime::kSubgraphOutput));
  }
  addState(number());
  const uint32_t counted = body.inputs.back();
  loop.inputs.push_back(addConstant(model.get(), &main, number(), 0));
  for (const uint32_t input : inputs) {
    const graph::Operand operand = body.operands[input];
    condition.inputs.push_back(add(&condition, operand, Lifetime::kSubgraphInput));
    body.inputs.push_back(input);
    main.inputs.push_back(add(&main, operand, Lifetime::kSubgraphInput));
    loop.inputs.push_back(main.inputs.back());
  }
  loop.outputs = main.outputs;
  main.operations = {std::move(loop)};

  const uint32_t next = add(&body, number(), Lifetime::kSubgraphOutput);
  body.operations.push_back({OperationType::kAdd,
                             {counted, addConstant(model.get(), &body, number(), 1),
                              addConstant(model.get(), &body, scalarNumber(), 0)},
                             {next},
                             ""});
  body.outputs.push_back(next);

  condition.outputs = {add(&condition, truth(), Lifetime::kSubgraphOutput)};
  condition.operations = {
      {OperationType::kLess,
       {condition.inputs[outputs.size()], addConstant(model.get(), &condition, number(), 2)},
       condition.outputs,
       ""}};
  model->subgraphs[0] = std::move(main);
  model->subgraphs.push_back(std::move(condition));
  model->subgraphs.push_back(std::move(body));
  RandomGraph made = graph;
  made.model = std::move(model);
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    made.inputs.insert(made.inputs.begin() + static_cast<ptrdiff_t>(i),
                       std::vector<uint8_t>(graph.outputs[i].size()));
  return made;
}

}  // namespace hearth::runtime
