// SPDX-License-Identifier: Apache-2.0
// Functions of one element, and of two elements of inputs that are broadcast.
#include <limits>
#include <utility>

#include "drivers/vulkan/lowering/broadcast.h"
#include "drivers/vulkan/lowering/lowering.h"
#include "drivers/vulkan/lowering/tables.h"
#include "ops/binary_arithmetic.h"
#include "ops/validation.h"

namespace hearth::vulkan {
namespace {

using graph::OperandType;
using ops::OperationType;

// The constant 0 of binary.comp.
enum class BinaryKind : uint32_t {
  kAdd,
  kSubtract,
  kMultiply,
  kMaximum,
  kMinimum,
  kSquaredDifference,
  kDivide,
  kPrelu,
  kPower,
};

BinaryKind binaryKindOf(OperationType type) {
  switch (type) {
    case OperationType::kAdd:
      return BinaryKind::kAdd;
    case OperationType::kSub:
      return BinaryKind::kSubtract;
    case OperationType::kMul:
      return BinaryKind::kMultiply;
    case OperationType::kMaximum:
      return BinaryKind::kMaximum;
    case OperationType::kMinimum:
      return BinaryKind::kMinimum;
    case OperationType::kSquaredDifference:
      return BinaryKind::kSquaredDifference;
    case OperationType::kDiv:
      return BinaryKind::kDivide;
    case OperationType::kPrelu:
      return BinaryKind::kPrelu;
    default:
      return BinaryKind::kPower;
  }
}

// The constant 0 of unary.comp.
enum class UnaryKind : uint32_t {
  kClamp,
  kLogistic,
  kTanh,
  kHardSwish,
  kElu,
  kExp,
  kLog,
  kSqrt,
  kRsqrt,
  kAbs,
  kNeg,
  kFloor,
  kSin,
  kCos,
  kCeil,
  kRound,
  kGelu,
  kGeluByTanh,
  kSoftCap,
  kSign,
};

struct UnaryFunction {
  UnaryKind kind;
  float first = 0.0f;
  float second = 0.0f;
};

UnaryFunction unaryFunctionOf(OperationType type) {
  switch (type) {
    case OperationType::kRelu:
      return {UnaryKind::kClamp, 0.0f, std::numeric_limits<float>::infinity()};
    case OperationType::kRelu1:
      return {UnaryKind::kClamp, -1.0f, 1.0f};
    case OperationType::kRelu6:
      return {UnaryKind::kClamp, 0.0f, 6.0f};
    case OperationType::kRelu0To1:
      return {UnaryKind::kClamp, 0.0f, 1.0f};
    case OperationType::kLogistic:
      return {UnaryKind::kLogistic};
    case OperationType::kTanh:
      return {UnaryKind::kTanh};
    case OperationType::kHardSwish:
      return {UnaryKind::kHardSwish};
    case OperationType::kElu:
      return {UnaryKind::kElu};
    case OperationType::kExp:
      return {UnaryKind::kExp};
    case OperationType::kLog:
      return {UnaryKind::kLog};
    case OperationType::kSqrt:
      return {UnaryKind::kSqrt};
    case OperationType::kRsqrt:
      return {UnaryKind::kRsqrt};
    case OperationType::kAbs:
      return {UnaryKind::kAbs};
    case OperationType::kNeg:
      return {UnaryKind::kNeg};
    case OperationType::kFloor:
      return {UnaryKind::kFloor};
    case OperationType::kSin:
      return {UnaryKind::kSin};
    case OperationType::kCos:
      return {UnaryKind::kCos};
    case OperationType::kCeil:
      return {UnaryKind::kCeil};
    case OperationType::kRound:
      return {UnaryKind::kRound};
    case OperationType::kGelu:
      return {UnaryKind::kGelu};
    default:
      return {UnaryKind::kSign};
  }
}

}  // namespace

Status lowerBinary(LoweringContext& context) {
  HEARTH_ASSIGN(const ops::BinaryParameters p, ops::parseBinary(context.operation()));
  const OperandType type = context.input(0).type();
  const BinaryKind kind = binaryKindOf(context.operation().operation->type);
  if (type == OperandType::kTensorQuant8Asymm || type == OperandType::kTensorQuant8AsymmSigned) {
    HEARTH_TRY(context.numberSuffix(context.input(1).type()));
    return addTable(context, true);
  }
  const bool isInteger = type == OperandType::kTensorInt32 && kind < BinaryKind::kDivide;
  std::string suffix = "i32";
  if (!isInteger) {
    HEARTH_ASSIGN(suffix, context.numberSuffix(type));
  }
  HEARTH_ASSIGN(std::vector<uint32_t> parameters, broadcastParameters(context, {0, 1}));
  if (isInteger) {
    const bool hasActivation = p.activation != ops::FusedActivation::kNone;
    if (hasActivation)
      return fail(ErrorCode::kUnsupported, "The GPU driver has no activation of TENSOR_INT32.");
    parameters.insert(parameters.end(), {bitsOf(std::numeric_limits<int32_t>::min()),
                                         bitsOf(std::numeric_limits<int32_t>::max())});
  } else {
    const auto limits = activationLimits(p.activation, *context.output(0).operand);
    parameters.insert(parameters.end(), limits.begin(), limits.end());
  }
  Dispatch dispatch;
  dispatch.shader = "binary." + suffix;
  dispatch.constant = std::to_underlying(kind);
  dispatch.bindings = {
      {context.inputTensor(0)}, {context.inputTensor(1)}, {context.outputTensor(0), true}};
  dispatch.parameters = std::move(parameters);
  return context.addRow(std::move(dispatch), context.output(0).elementCount());
}

Status lowerUnary(LoweringContext& context) {
  const OperandType type = context.input(0).type();
  HEARTH_ASSIGN(const std::string suffix, context.numberSuffix(type));
  if (graph::isQuantized(type)) return addTable(context, false);
  UnaryFunction function = unaryFunctionOf(context.operation().operation->type);
  if (function.kind == UnaryKind::kElu) {
    HEARTH_ASSIGN(function.first, ops::floatScalar(context.operation(), 1));
  } else if (function.kind == UnaryKind::kGelu) {
    HEARTH_ASSIGN(const bool isByTanh, context.operation().scalar<bool>(1));
    if (isByTanh) function.kind = UnaryKind::kGeluByTanh;
  }
  Dispatch dispatch;
  dispatch.shader = "unary." + suffix;
  dispatch.constant = std::to_underlying(function.kind);
  dispatch.bindings = {{context.inputTensor(0)}, {context.outputTensor(0), true}};
  const uint64_t count = context.output(0).elementCount();
  dispatch.parameters = {static_cast<uint32_t>(count), bitsOf(function.first),
                         bitsOf(function.second)};
  return context.addRow(std::move(dispatch), count);
}

}  // namespace hearth::vulkan
