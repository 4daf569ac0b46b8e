// SPDX-License-Identifier: Apache-2.0
#include "frontends/delegate/shape_inference.h"

#include <algorithm>
#include <array>
#include <vector>

#include "ops/operation.h"

namespace hearth::delegate {
namespace {

using graph::Lifetime;

// Tensors with more elements are not numbers that were computed from shapes.
constexpr uint64_t kMostFoldedElements = 64;
constexpr size_t kMostFoldedBytes = kMostFoldedElements * sizeof(uint64_t);
constexpr size_t kConstantAlignment = 16;

class Inference {
 public:
  explicit Inference(graph::Model* model)
      : model_(*model), isFolded_(model->main().operands.size(), false) {}

  Status run() {
    for (const uint32_t input : main().inputs)
      if (!graph::isFullySpecified(main().operands[input]))
        return fail(ErrorCode::kUnsupported, "The shape of the input {} is not known.",
                    graph::describe(main().operands[input]));
    std::vector<graph::Operation> left;
    for (graph::Operation& operation : main().operations) {
      HEARTH_TRY(infer(operation));
      HEARTH_ASSIGN(const bool isDone, fold(operation));
      if (!isDone) left.push_back(std::move(operation));
    }
    main().operations = std::move(left);
    return {};
  }

 private:
  graph::Subgraph& main() { return model_.main(); }
  graph::Operand& operand(uint32_t index) { return main().operands[index]; }

  Status infer(const graph::Operation& operation) {
    definition_ = ops::findOperation(operation.type);
    if (definition_ == nullptr || operation.type == graph::OperationType::kIf ||
        operation.type == graph::OperationType::kWhile)
      return fail(ErrorCode::kUnsupported, "{} decides at run time what is computed.",
                  graph::nameOf(operation.type));
    ops::makeContext(model_, main(), operation, &context_);
    if (Status prepared = definition_->prepare(context_); !prepared) {
      if (!ops::isNeedsRuntimeValue(prepared.error())) return prepared;
      return fail(ErrorCode::kIncomplete, "{}", prepared.error().message());
    }
    for (size_t i = 0; i < operation.outputs.size(); ++i) {
      const ops::Tensor& output = context_.outputs[i];
      if (!output.isPresent) continue;
      if (!output.hasKnownShape)
        return fail(ErrorCode::kIncomplete, "The shape of output {} of {} stays unknown.", i,
                    context_.describe());
      graph::Operand& target = operand(operation.outputs[i]);
      target.dimensions = output.dimensions;
      if (target.dimensions.empty()) target.isRankZeroTensor = true;
      if (!graph::isFullySpecified(target))
        return fail(ErrorCode::kUnsupported, "Output {} of {} has no elements.", i,
                    context_.describe());
    }
    return {};
  }

  // Whether the operation computes a few numbers that depend on shapes alone.
  bool isFoldable(const graph::Operation& operation) {
    if (operation.outputs.size() != 1) return false;
    const graph::Operand& output = operand(operation.outputs[0]);
    const Result<uint64_t> count = graph::elementCount(output);
    if (output.lifetime != Lifetime::kTemporary || !count || *count > kMostFoldedElements)
      return false;
    if (operation.type == graph::OperationType::kShape ||
        operation.type == graph::OperationType::kRank)
      return true;
    if (operation.type == graph::OperationType::kCustom) return false;
    const auto isKnown = [this](uint32_t input) {
      return operand(input).isConstant() || !operand(input).hasValue();
    };
    return std::ranges::all_of(operation.inputs, isKnown) &&
           std::ranges::any_of(operation.inputs,
                               [this](uint32_t input) { return isFolded_[input]; });
  }

  // Must be called after infer(), whose context it uses.
  Result<bool> fold(const graph::Operation& operation) {
    if (!isFoldable(operation)) return false;
    graph::Operand& output = operand(operation.outputs[0]);
    HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(output));
    alignas(kConstantAlignment) std::array<uint8_t, kMostFoldedBytes> value{};
    if (bytes > value.size()) return false;
    context_.outputs[0].data = value.data();
    HEARTH_TRY(definition_->execute(context_));
    std::vector<uint8_t>& constants = model_.constantBytes;
    const size_t offset =
        (constants.size() + kConstantAlignment - 1) / kConstantAlignment * kConstantAlignment;
    constants.resize(offset);
    constants.insert(constants.end(), value.begin(), value.begin() + bytes);
    output.lifetime = Lifetime::kConstantCopy;
    output.location = {.pool = 0, .offset = offset, .length = bytes};
    isFolded_[operation.outputs[0]] = true;
    return true;
  }

  graph::Model& model_;
  std::vector<bool> isFolded_;  // by operand
  const ops::OperationDefinition* definition_ = nullptr;
  ops::OperationContext context_;
};

}  // namespace

Status inferShapes(graph::Model* model) {
  return Inference(model).run();
}

}  // namespace hearth::delegate
