// SPDX-License-Identifier: Apache-2.0
#include "graph/rank_zero.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "graph/codes.h"
#include "graph/operation_name.h"

namespace hearth::graph {
namespace {

class Lifting {
 public:
  Lifting(Model* model, Subgraph* subgraph) : model_(model), subgraph_(subgraph) {}

  Status run() {
    for (const auto* list : {&subgraph_->inputs, &subgraph_->outputs})
      for (const uint32_t index : *list)
        if (isRankZero(index))
          return fail(ErrorCode::kUnsupported, "The {} {} of the model has rank 0.",
                      list == &subgraph_->inputs ? "input" : "output",
                      subgraph_->operands[index].name);
    for (Operation& operation : subgraph_->operations) {
      const auto touches = [&](const std::vector<uint32_t>& list) {
        return std::ranges::any_of(list, [&](uint32_t index) { return isRankZero(index); });
      };
      if ((touches(operation.inputs) || touches(operation.outputs)) && !adapt(&operation))
        return fail(ErrorCode::kUnsupported, "{} ({}) has a tensor of rank 0.",
                    nameOf(operation.type), operationName(*subgraph_, operation));
    }
    for (Operand& operand : subgraph_->operands) {
      if (!operand.isRankZeroTensor) continue;
      operand.isRankZeroTensor = false;
      operand.dimensions = {1};
    }
    return {};
  }

 private:
  bool isRankZero(uint32_t index) const { return subgraph_->operands[index].isRankZeroTensor; }

  // False for an operation whose result would differ with [1].
  bool adapt(Operation* operation) {
    if (ignoresRankOfOneElement(operation->type)) return true;
    switch (operation->type) {
      case OperationType::kReshape:
        return true;
      case OperationType::kSqueeze:
        // One element remains: the result has rank 0, or the input had it.
        operation->type = OperationType::kReshape;
        operation->inputs = {operation->inputs[0], shapeOfOne()};
        return isRankZero(operation->outputs[0]);
      case OperationType::kPack:
        // Packing scalars is concatenating tensors of shape [1]; there the axis comes last.
        std::rotate(operation->inputs.begin(), operation->inputs.begin() + 1,
                    operation->inputs.end());
        operation->type = OperationType::kConcatenation;
        return true;
      default:
        return false;
    }
  }

  // Adds a constant TENSOR_INT32 {1}.
  uint32_t shapeOfOne() {
    const int32_t one = 1;
    Operand shape;
    shape.type = OperandType::kTensorInt32;
    shape.dimensions = {1};
    shape.lifetime = Lifetime::kConstantCopy;
    model_->constantBytes.resize((model_->constantBytes.size() + 3) / 4 * 4);
    shape.location = {0, model_->constantBytes.size(), sizeof one};
    const auto* begin = reinterpret_cast<const uint8_t*>(&one);
    model_->constantBytes.insert(model_->constantBytes.end(), begin, begin + sizeof one);
    subgraph_->operands.push_back(std::move(shape));
    return static_cast<uint32_t>(subgraph_->operands.size() - 1);
  }

  Model* const model_;
  Subgraph* const subgraph_;
};

}  // namespace

bool ignoresRankOfOneElement(OperationType type) {
  switch (type) {
    case OperationType::kAbs:
    case OperationType::kAdd:
    case OperationType::kCast:
    case OperationType::kDequantize:
    case OperationType::kDiv:
    case OperationType::kEqual:
    case OperationType::kExp:
    case OperationType::kFloor:
    case OperationType::kGreater:
    case OperationType::kGreaterEqual:
    case OperationType::kLess:
    case OperationType::kLessEqual:
    case OperationType::kLog:
    case OperationType::kLogistic:
    case OperationType::kMaximum:
    case OperationType::kMinimum:
    case OperationType::kMul:
    case OperationType::kNeg:
    case OperationType::kNotEqual:
    case OperationType::kPow:
    case OperationType::kQuantize:
    case OperationType::kRelu:
    case OperationType::kRsqrt:
    case OperationType::kSin:
    case OperationType::kSqrt:
    case OperationType::kSub:
    case OperationType::kTanh:
      return true;
    default:
      return false;
  }
}

Status liftRankZeroTensors(Model* model) {
  for (Subgraph& subgraph : model->subgraphs) HEARTH_TRY(Lifting(model, &subgraph).run());
  return {};
}

}  // namespace hearth::graph
