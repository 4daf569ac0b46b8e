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

FloatModel::FloatModel(std::vector<Shape> inputs, std::vector<Shape> outputs) {
  for (Shape& shape : inputs) in.push_back(addTensor(schema::TensorType::FLOAT32, shape));
  for (Shape& shape : outputs) out.push_back(addTensor(schema::TensorType::FLOAT32, shape));
  setArguments(in, out);
}

}  // namespace hearth::tflite
