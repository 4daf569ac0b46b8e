// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/lowering/plan_builder.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "drivers/vulkan/lowering/lowering.h"
#include "ops/aligned_constants.h"
#include "ops/operation.h"

namespace hearth::vulkan {
namespace {

// Places in a tensor are 32-bit numbers with a sign in shaders.
constexpr uint64_t kMostElements = uint64_t{1} << 30;

class PlanBuilder {
 public:
  PlanBuilder(const graph::Model& model, const GpuFacts& facts)
      : model_(model),
        main_(model.main()),
        facts_(facts),
        shapes_(main_.operands.size()),
        tensors_(main_.operands.size(), kNoTensor) {
    for (size_t i = 0; i < main_.operands.size(); ++i)
      if (graph::isFullySpecified(main_.operands[i])) shapes_[i] = main_.operands[i].dimensions;
  }

  Status addInputs() {
    for (const uint32_t index : main_.inputs) {
      TensorId tensor = kNoTensor;
      if (!graph::isScalar(main_.operands[index].type)) {
        HEARTH_ASSIGN(tensor, tensorOf(index));
      }
      plan_.inputs.push_back(tensor);
    }
    return {};
  }

  Status addOperation(const graph::Operation& operation) {
    const Lowering lowering = findLowering(operation.type);
    if (lowering == nullptr)
      return fail(ErrorCode::kUnsupported, "The GPU driver has no {}.",
                  graph::nameOf(operation.type));
    HEARTH_ASSIGN(ops::OperationContext context, inferShapes(operation));
    std::vector<TensorId> inputs, outputs;
    HEARTH_TRY(tensorsOf(operation.inputs, &inputs));
    HEARTH_TRY(tensorsOf(operation.outputs, &outputs));
    LoweringContext lowered(std::move(context), facts_, &plan_, std::move(inputs),
                            std::move(outputs));
    return lowering(lowered);
  }

  Status addOutputs() {
    for (const uint32_t index : main_.outputs) {
      if (tensors_[index] == kNoTensor)
        return fail(ErrorCode::kUnsupported, "The output {} is not a tensor that is computed.",
                    graph::describe(main_.operands[index]));
      plan_.outputs.push_back(tensors_[index]);
      plan_.outputDimensions.push_back(*shapes_[index]);
    }
    return {};
  }

  void addArguments() {
    const auto copy = [&](const std::vector<uint32_t>& from, std::vector<uint32_t>* to) {
      for (const uint32_t index : from) {
        to->push_back(static_cast<uint32_t>(plan_.arguments.operands.size()));
        plan_.arguments.operands.push_back(main_.operands[index]);
      }
    };
    copy(main_.inputs, &plan_.arguments.inputs);
    copy(main_.outputs, &plan_.arguments.outputs);
  }

  Plan& plan() { return plan_; }

 private:
  // The operation with the shapes that are known by now; adds those of its outputs.
  Result<ops::OperationContext> inferShapes(const graph::Operation& operation) {
    ops::OperationContext context = ops::makeContext(model_, main_, operation);
    for (size_t i = 0; i < context.inputs.size(); ++i) {
      ops::Tensor& input = context.inputs[i];
      if (!input.isPresent) continue;
      const std::optional<graph::Dimensions>& shape = shapes_[operation.inputs[i]];
      if (!shape)
        return fail(ErrorCode::kUnsupported, "{} is of unknown shape before it runs.",
                    graph::describe(*input.operand));
      input.dimensions = *shape;
      input.hasKnownShape = true;
      if (input.data != nullptr)
        input.data = aligned_.aligned(input.data, input.type(), input.operand->location.length);
    }
    const ops::OperationDefinition* definition = ops::findOperation(operation.type);
    if (definition == nullptr)
      return fail(ErrorCode::kUnsupported, "{} has no definition.", graph::nameOf(operation.type));
    HEARTH_TRY(definition->prepare(context));
    for (size_t i = 0; i < context.outputs.size(); ++i)
      if (context.outputs[i].isPresent)
        shapes_[operation.outputs[i]] = context.outputs[i].dimensions;
    return context;
  }

  Status tensorsOf(const std::vector<uint32_t>& operands, std::vector<TensorId>* tensors) {
    for (const uint32_t index : operands) {
      const graph::Operand& operand = main_.operands[index];
      const bool isTensor = operand.hasValue() && !graph::isScalar(operand.type) &&
                            operand.lifetime != graph::Lifetime::kSubgraph;
      TensorId tensor = kNoTensor;
      if (isTensor) {
        HEARTH_ASSIGN(tensor, tensorOf(index));
      }
      tensors->push_back(tensor);
    }
    return {};
  }

  Result<TensorId> tensorOf(uint32_t index) {
    if (tensors_[index] != kNoTensor) return tensors_[index];
    const graph::Operand& operand = main_.operands[index];
    if (!shapes_[index])
      return fail(ErrorCode::kUnsupported, "{} is of unknown shape before it runs.",
                  graph::describe(operand));
    graph::Operand sized = operand;
    sized.dimensions = *shapes_[index];
    if (sized.dimensions.empty()) sized.isRankZeroTensor = true;
    HEARTH_ASSIGN(const uint64_t elements, graph::elementCount(sized));
    HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(sized));
    if (elements == 0 || elements > kMostElements || bytes > facts_.maxBufferRange)
      return fail(ErrorCode::kUnsupported,
                  "{} has {} elements and {} bytes; the GPU takes 1 to {} elements and {} bytes.",
                  graph::describe(sized), elements, bytes, kMostElements, facts_.maxBufferRange);
    PlannedTensor tensor;
    tensor.bytes = bytes;
    tensor.root = static_cast<TensorId>(plan_.tensors.size());
    tensor.name = operand.name;
    if (operand.isConstant()) {
      tensor.place = PlannedTensor::Place::kConstants;
      tensor.constant = model_.constantData(operand);
    }
    tensors_[index] = tensor.root;
    plan_.tensors.push_back(std::move(tensor));
    return tensors_[index];
  }

  const graph::Model& model_;
  const graph::Subgraph& main_;
  const GpuFacts& facts_;
  std::vector<std::optional<graph::Dimensions>> shapes_;  // by operand
  std::vector<TensorId> tensors_;                         // by operand
  ops::AlignedConstants aligned_;
  Plan plan_;
};

}  // namespace

std::vector<CheckedLowering> checkLowerings(const graph::Model& model,
                                            const std::vector<bool>& isValid,
                                            const GpuFacts& facts) {
  PlanBuilder builder(model, facts);
  std::vector<CheckedLowering> checked;
  for (size_t i = 0; i < model.main().operations.size(); ++i) {
    const graph::Operation& operation = model.main().operations[i];
    const size_t before = builder.plan().dispatches.size();
    CheckedLowering& lowering = checked.emplace_back();
    if (isValid[i])
      lowering.status = builder.addOperation(operation);
    else
      lowering.status =
          fail(ErrorCode::kUnsupported, "{} is not valid.", graph::nameOf(operation.type));
    for (const Dispatch& dispatch : std::span(builder.plan().dispatches).subspan(before))
      lowering.shaders.insert(dispatch.shader);
  }
  return checked;
}

Result<Plan> buildPlan(const graph::Model& model, const GpuFacts& facts, uint64_t limit) {
  PlanBuilder builder(model, facts);
  HEARTH_TRY(builder.addInputs());
  for (const graph::Operation& operation : model.main().operations)
    HEARTH_TRY(builder.addOperation(operation));
  HEARTH_TRY(builder.addOutputs());
  builder.addArguments();
  dropUnused(&builder.plan());
  HEARTH_TRY(placeTensors(&builder.plan(), facts.rangeAlignment, limit));
  return std::move(builder.plan());
}

}  // namespace hearth::vulkan
