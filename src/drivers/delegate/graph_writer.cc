// SPDX-License-Identifier: Apache-2.0
#include "drivers/delegate/graph_writer.h"

#include <algorithm>
#include <utility>

#include "base/caught.h"
#include "base/format.h"
#include "drivers/delegate/operation_writer.h"
#include "tflite_abi/tensors.h"

namespace hearth::drivers::delegate {
namespace {

// Weights that a file has in a smaller type become constants of the type that kernels compute with:
// few delegates look through the operation, and TensorFlow Lite has not all of the types.
bool isOfConstant(const ops::OperationContext& context) {
  return context.operation->type == graph::OperationType::kDequantize &&
         context.inputs[0].operand->isConstant();
}

Status writeResult(const ops::OperationDefinition& definition, ops::OperationContext* context,
                   TensorWriter* tensors) {
  HEARTH_ASSIGN(context->outputs[0].data, tensors->constantOf(context->operation->outputs[0]));
  return definition.execute(*context);
}

Status writeOperation(const graph::Model& model, size_t index, ops::OperationContext* context,
                      TensorWriter* tensors, tflite_abi::TensorflowMinor version,
                      WrittenGraph* graph) {
  const graph::Operation& operation = model.main().operations[index];
  const WriteOperation write = findOperationWriter(operation.type);
  const ops::OperationDefinition* const definition = ops::findOperation(operation.type);
  if (write == nullptr || definition == nullptr)
    return fail(ErrorCode::kUnsupported, "TensorFlow Lite has no {}.",
                graph::nameOf(operation.type));
  ops::makeContext(model, model.main(), operation, context);
  HEARTH_TRY(definition->prepare(*context));
  if (isOfConstant(*context)) return writeResult(*definition, context, tensors);
  OperationWriter writer(*context, index, tensors, version, graph);
  return write(writer);
}

}  // namespace

WrittenGraph writeGraph(std::shared_ptr<const graph::Model> model,
                        tflite_abi::TensorflowMinor version) {
  WrittenGraph graph;
  graph.model = std::move(model);
  const graph::Subgraph& main = graph.model->main();
  TensorWriter tensors(&graph);
  ops::OperationContext context;
  for (size_t i = 0; i < main.operations.size(); ++i) {
    const size_t before = graph.nodes.size();
    const Status written = writeOperation(*graph.model, i, &context, &tensors, version, &graph);
    graph.refusals.push_back(written ? "" : written.error().toString());
    if (!written) graph.nodes.resize(before);
  }
  for (uint32_t i = 0; i < main.operands.size(); ++i) graph.ofOperand.push_back(tensors.known(i));
  for (const uint32_t input : main.inputs) graph.inputs.push_back(tensors.known(input));
  for (const uint32_t output : main.outputs) graph.outputs.push_back(tensors.known(output));
  return graph;
}

}  // namespace hearth::drivers::delegate
