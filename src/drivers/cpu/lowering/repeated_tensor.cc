// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/repeated_tensor.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "drivers/cpu/kernels/attention_kernel.h"
#include "drivers/cpu/lowering/operation_context.h"
#include "ops/concatenation.h"
#include "ops/transpose.h"

namespace hearth::cpu {
namespace {

using graph::Dimensions;
using graph::OperandType;
using graph::Operation;
using graph::OperationType;

// How many operations may lie between an input of integers and a 0 that is made of it.
constexpr unsigned kMostSteps = 6;

uint32_t countOf(std::span<const uint32_t> dimensions) {
  return std::accumulate(dimensions.begin(), dimensions.end(), uint32_t{1}, std::multiplies<>());
}

bool isInteger(OperandType type) {
  return type == OperandType::kTensorInt32 || type == OperandType::kTensorInt64;
}

// Whether all bytes of a constant of one element are 0.
bool isConstantZero(PlanBuilder* builder, uint32_t operand) {
  if (!builder->constants().hasElements(operand) || builder->tensor(operand).elementCount() != 1)
    return false;
  const OperandType type = builder->operand(operand).type;
  if (type != OperandType::kTensorFloat32 && !isInteger(type)) return false;
  const size_t size = graph::elementSize(builder->operand(operand));
  const uint8_t* const bytes = builder->constants().elements(operand);
  return std::all_of(bytes, bytes + size, [](uint8_t byte) { return byte == 0; });
}

bool isZero(PlanBuilder* builder, uint32_t operand, unsigned steps) {
  if (isConstantZero(builder, operand)) return true;
  const std::optional<uint32_t> writer = builder->producer(operand);
  if (steps == 0 || !writer || builder->constants().isWeight(operand) ||
      builder->tensor(operand).elementCount() != 1)
    return false;
  const Operation& operation = builder->operation(*writer);
  const std::vector<uint32_t>& inputs = operation.inputs;
  const auto typeOf = [&](uint32_t tensor) {
    return builder->operand(tensor).type;
  };
  // No number of integers becomes infinite or NaN, times which 0 is not 0.
  const auto isFinite = [&](uint32_t factor) {
    if (isInteger(typeOf(factor))) return true;
    const std::optional<uint32_t> cast = builder->producer(factor);
    return cast && builder->operation(*cast).type == OperationType::kCast &&
           isInteger(typeOf(builder->operation(*cast).inputs[0]));
  };
  switch (operation.type) {
    case OperationType::kReshape:
    case OperationType::kSqueeze:
    case OperationType::kExpandDims:
      return isZero(builder, inputs[0], steps - 1);
    case OperationType::kCast:
      return isInteger(typeOf(inputs[0])) && isZero(builder, inputs[0], steps - 1);
    case OperationType::kAdd:
      return isZero(builder, inputs[0], steps - 1) && isZero(builder, inputs[1], steps - 1);
    case OperationType::kMul:
      return (isConstantZero(builder, inputs[1]) && isFinite(inputs[0])) ||
             (isConstantZero(builder, inputs[0]) && isFinite(inputs[1]));
    default:
      return false;
  }
}

class Repetition {
 public:
  Repetition(PlanBuilder* builder, uint32_t operand, size_t rank)
      : builder_(*builder), rank_(rank) {
    tensor_.operand = operand;
    tensor_.parts.resize(countOf(outer(operand)));
    std::iota(tensor_.parts.begin(), tensor_.parts.end(), 0);
  }

  Result<RepeatedTensor> follow() {
    RepeatedTensor found = tensor_;
    for (;;) {
      HEARTH_ASSIGN(const bool isFollowed, step());
      if (!isFollowed) return found;
      if (!areNumbers_) found = tensor_;
    }
  }

 private:
  const Dimensions& dimensions(uint32_t operand) const {
    return builder_.tensor(operand).dimensions;
  }
  // The dimensions that number the parts.
  std::span<const uint32_t> outer(uint32_t operand) const {
    return std::span(dimensions(operand)).first(dimensions(operand).size() - rank_);
  }
  bool hasSameParts(uint32_t a, uint32_t b) const {
    const Dimensions& left = dimensions(a);
    const Dimensions& right = dimensions(b);
    return left.size() >= rank_ && right.size() >= rank_ &&
           std::equal(left.end() - static_cast<ptrdiff_t>(rank_), left.end(),
                      right.end() - static_cast<ptrdiff_t>(rank_));
  }

  // Goes to what the operand is made of. `parts`: the part of `source` that each part of the
  // operand is; empty = they are the same.
  void goTo(uint32_t source, uint32_t operation, const std::vector<uint32_t>& parts = {}) {
    tensor_.operand = source;
    tensor_.operations.push_back(operation);
    if (parts.empty()) return;
    for (uint32_t& part : tensor_.parts) part = parts[part];
  }

  Result<bool> step() {
    const uint32_t operand = tensor_.operand;
    const std::optional<uint32_t> writer = builder_.producer(operand);
    if (!writer || builder_.constants().isWeight(operand) || builder_.isReferenceOnly(*writer))
      return false;
    const Operation& operation = builder_.operation(*writer);
    // Custom operations may have none; those below have one.
    const uint32_t source = operation.inputs.empty() ? operand : operation.inputs[0];
    switch (operation.type) {
      case OperationType::kReshape:
      case OperationType::kSqueeze:
      case OperationType::kExpandDims:
        if (!hasSameParts(operand, source)) return false;
        goTo(source, *writer);
        return true;
      case OperationType::kBroadcastTo:
        if (!hasSameParts(operand, source)) return false;
        goTo(source, *writer, broadcastParts(operand, source));
        return true;
      case OperationType::kTranspose:
        return throughTranspose(*writer);
      case OperationType::kConcatenation:
        return throughConcatenation(*writer);
      case OperationType::kNotEqual:
        return throughComparison(*writer);
      case OperationType::kCast:
        if (!areNumbers_ || builder_.operand(source).type != OperandType::kTensorBool8)
          return false;
        areNumbers_ = false;
        goTo(source, *writer);
        return true;
      default:
        return false;
    }
  }

  std::vector<uint32_t> broadcastParts(uint32_t operand, uint32_t source) const {
    // Of which the last one, here one for all of a part, is not counted.
    Dimensions all(outer(operand).begin(), outer(operand).end());
    Dimensions once(outer(source).begin(), outer(source).end());
    all.push_back(1);
    once.push_back(1);
    return repeatedRows(all, once);
  }

  // Matrices whose rows and columns are exchanged.
  Result<bool> throughTranspose(uint32_t writer) {
    const std::vector<uint32_t>& inputs = builder_.operation(writer).inputs;
    if (rank_ != 2 || inputs.size() < 2 || !builder_.operand(inputs[1]).isConstant()) return false;
    HEARTH_ASSIGN(const ops::TransposeParameters parameters,
                  ops::parseTranspose(contextOf(builder_, writer)));
    const auto& order = parameters.permutation;
    const size_t rank = order.size();
    for (size_t i = 0; i < rank; ++i) {
      const size_t expected = i + 2 < rank ? i : 2 * rank - 3 - i;
      if (order[i] != expected) return false;
    }
    tensor_.areTransposed = !tensor_.areTransposed;
    goTo(inputs[0], writer);
    return true;
  }

  Result<bool> throughConcatenation(uint32_t writer) {
    const ops::OperationContext context = contextOf(builder_, writer);
    const std::vector<uint32_t>& inputs = context.operation->inputs;
    HEARTH_ASSIGN(const ops::ConcatenationParameters parameters, ops::parseConcatenation(context));
    const size_t axis = parameters.axis;
    const auto isSame = [&](uint32_t input) {
      return input == inputs[0];
    };
    if (axis + rank_ >= parameters.dimensions.size() ||
        !std::all_of(inputs.begin(),
                     inputs.begin() + static_cast<ptrdiff_t>(parameters.tensorCount), isSame))
      return false;
    const std::span<const uint32_t> once = outer(inputs[0]);
    const uint32_t behind = countOf(once.subspan(axis + 1));
    const uint32_t repeated = once[axis] * behind;  // one behind the other
    const uint32_t times = static_cast<uint32_t>(parameters.tensorCount);
    std::vector<uint32_t> parts(countOf(once) * times);
    for (uint32_t i = 0; i < parts.size(); ++i)
      parts[i] = i / (repeated * times) * repeated + i % repeated;
    goTo(inputs[0], writer, parts);
    return true;
  }

  // Numbers that are compared with 0 are booleans again where they have been some.
  Result<bool> throughComparison(uint32_t writer) {
    const std::vector<uint32_t>& inputs = builder_.operation(writer).inputs;
    for (const size_t i : {0, 1}) {
      if (areNumbers_ || !isConstantZero(&builder_, inputs[1 - i]) ||
          dimensions(inputs[i]) != dimensions(tensor_.operand))
        continue;
      areNumbers_ = true;
      goTo(inputs[i], writer);
      return true;
    }
    return false;
  }

  PlanBuilder& builder_;
  const size_t rank_;
  RepeatedTensor tensor_;
  bool areNumbers_ = false;  // the operand's elements, of booleans
};

}  // namespace

Result<RepeatedTensor> findRepeated(PlanBuilder* builder, uint32_t operand, size_t rank) {
  return Repetition(builder, operand, rank).follow();
}

bool isComputedZero(PlanBuilder* builder, uint32_t operand) {
  return isZero(builder, operand, kMostSteps);
}

}  // namespace hearth::cpu
