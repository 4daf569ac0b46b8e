// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/testing/import_testing.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include "base/format.h"

namespace hearth::tflite {

using graph::OperandType;

namespace {

std::string textOf(const graph::Model& model, const graph::Operand& operand) {
  if (!operand.hasValue()) return "-";
  if (operand.lifetime == graph::Lifetime::kSubgraph)
    return base::formatText("#{}", operand.subgraphIndex);
  if (operand.type == OperandType::kInt32)
    return base::formatText("{}", valueOf<int32_t>(model, operand));
  if (operand.type == OperandType::kFloat32)
    return base::formatText("{}f", valueOf<float>(model, operand));
  if (operand.type == OperandType::kBool) return valueOf<bool>(model, operand) ? "true" : "false";
  if (!operand.name.empty()) return operand.name;
  if (operand.type != OperandType::kTensorInt32 || !operand.isConstant()) return "%";
  std::string text = "{";
  for (size_t i = 0; i < operand.location.length / 4; ++i)
    text += base::formatText("{}{}", i == 0 ? "" : ",", valueOf<int32_t>(model, operand, i));
  return text + "}";
}

}  // namespace

std::vector<std::string> linesOf(const graph::Model& model, size_t subgraph) {
  const graph::Subgraph& graph = model.subgraphs[subgraph];
  std::vector<std::string> lines;
  for (const graph::Operation& operation : graph.operations) {
    std::string line = graph::nameOf(operation.type);
    for (const uint32_t input : operation.inputs)
      line += " " + textOf(model, graph.operands[input]);
    line += " ->";
    for (const uint32_t output : operation.outputs)
      line += " " + textOf(model, graph.operands[output]);
    lines.push_back(line);
  }
  return lines;
}

Result<ImportedGraph> tryImport(const ModelWriter& writer) {
  HEARTH_ASSIGN(const auto file, ModelFile::fromPool(poolOf(writer.write())));
  return writer.model.signature_defs.empty() ? file->importSubgraph(0) : file->importSignature("");
}

ImportedGraph import(const ModelWriter& writer) {
  auto imported = tryImport(writer);
  if (!imported) {
    ADD_FAILURE() << imported.error().toString();
    return {.model = std::make_shared<graph::Model>(
                graph::Model{.subgraphs = std::vector<graph::Subgraph>(3)})};
  }
  return std::move(*imported);
}

std::vector<std::string> translate(const ModelWriter& writer) {
  return linesOf(*import(writer).model);
}

std::string errorOf(const ModelWriter& writer) {
  const auto imported = tryImport(writer);
  if (imported) return "imported";
  return imported.error().message();
}

std::vector<std::vector<float>> outputsOf(const ModelWriter& writer,
                                          std::vector<std::vector<float>> inputs,
                                          ops::KernelSet kernels) {
  const ImportedGraph imported = import(writer);
  const graph::Subgraph& graph = imported.model->subgraphs.front();
  std::vector<std::vector<float>> found;
  const auto interpreter = ops::Interpreter::create(imported.model, {.kernels = kernels});
  if (!interpreter || inputs.size() != graph.inputs.size()) {
    ADD_FAILURE() << (interpreter ? "a wrong number of inputs" : interpreter.error().toString());
    return found;
  }
  std::vector<ops::RunArgument> arguments;
  for (size_t i = 0; i < inputs.size(); ++i)
    arguments.push_back({.data = inputs[i].data(),
                         .length = inputs[i].size() * sizeof(float),
                         .dimensions = graph.operands[graph.inputs[i]].dimensions,
                         .isPresent = true});
  std::vector<ops::RunArgument> results;
  for (const uint32_t output : graph.outputs)
    found.emplace_back(graph::elementCount(graph.operands[output]).value_or(0));
  for (std::vector<float>& values : found)
    results.push_back({.data = values.data(),
                       .length = values.size() * sizeof(float),
                       .dimensions = {},
                       .isPresent = true});
  const ops::RunResult result = (*interpreter)->run(arguments, results, {});
  EXPECT_TRUE(result.status.has_value()) << result.status.error().toString();
  return found;
}

FloatModel::FloatModel(std::vector<Shape> inputs, std::vector<Shape> outputs) {
  for (Shape& shape : inputs) in.push_back(addTensor(schema::TensorType::FLOAT32, shape));
  for (Shape& shape : outputs) out.push_back(addTensor(schema::TensorType::FLOAT32, shape));
  setArguments(in, out);
}

}  // namespace hearth::tflite
