// SPDX-License-Identifier: Apache-2.0
#include "frontends/nnapi/objects/operand_type.h"

#include <cmath>
#include <optional>
#include <string>

#include "frontends/nnapi/objects/extensions.h"

namespace hearth::nnapi {
namespace {

constexpr uint64_t kMaxOperandBytes = UINT32_MAX;

struct ZeroPoints {
  int32_t lowest;
  int32_t highest;
};

// The range of zero points of a type that must have a scale; nullopt for other types.
std::optional<ZeroPoints> quantizedZeroPoints(graph::OperandType type) {
  switch (type) {
    case graph::OperandType::kTensorQuant8Asymm:
      return ZeroPoints{0, 255};
    case graph::OperandType::kTensorQuant8AsymmSigned:
      return ZeroPoints{-128, 127};
    case graph::OperandType::kTensorQuant16Asymm:
      return ZeroPoints{0, 65535};
    case graph::OperandType::kTensorQuant8Symm:
    case graph::OperandType::kTensorQuant16Symm:
      return ZeroPoints{0, 0};
    default:
      return std::nullopt;
  }
}

Status checkQuantization(const graph::Operand& operand) {
  if (graph::isDriverCode(operand.type) && (operand.scale != 0.0f || operand.zeroPoint != 0))
    return fail(ErrorCode::kBadData, "{} has the scale {} and the zero point {}; both must be 0.",
                graph::describe(operand), operand.scale, operand.zeroPoint);
  // Types of hearth.tflite may have whatever a .tflite file has; graph::validate() checks them.
  if (isExtensionType(static_cast<int32_t>(operand.type))) return {};
  if (!std::isfinite(operand.scale))
    return fail(ErrorCode::kBadData, "The scale of {} is not finite.", graph::describe(operand));
  const std::optional<ZeroPoints> range = quantizedZeroPoints(operand.type);
  if (range) {
    if (operand.scale <= 0.0f)
      return fail(ErrorCode::kBadData, "The scale {} of {} is not positive.", operand.scale,
                  graph::describe(operand));
    if (operand.zeroPoint < range->lowest || operand.zeroPoint > range->highest)
      return fail(ErrorCode::kBadData, "The zero point {} of {} is outside [{}, {}].",
                  operand.zeroPoint, graph::describe(operand), range->lowest, range->highest);
    return {};
  }
  if (operand.type == graph::OperandType::kTensorInt32) {
    if (operand.scale < 0.0f)
      return fail(ErrorCode::kBadData, "The scale {} of {} is negative.", operand.scale,
                  graph::describe(operand));
    return {};
  }
  if (operand.scale != 0.0f || operand.zeroPoint != 0)
    return fail(ErrorCode::kBadData, "{} has the scale {} and the zero point {}; both must be 0.",
                graph::describe(operand), operand.scale, operand.zeroPoint);
  return {};
}

// Checks the product of the known dimensions, so that no multiplication overflows later.
Status checkSize(const graph::Operand& operand) {
  uint64_t bytes = graph::elementSize(operand);
  for (const uint32_t dimension : operand.dimensions) {
    if (dimension == 0) continue;
    bytes *= dimension;
    if (bytes > kMaxOperandBytes)
      return fail(ErrorCode::kBadData, "The operand {} has more than {} bytes.",
                  graph::describe(operand), kMaxOperandBytes);
  }
  return {};
}

// Sets what only an operand of a driver's type has. Whether the type is that of scalars.
Result<bool> setElementSize(graph::Operand* operand) {
  if (graph::isDriverCode(operand->type)) {
    HEARTH_ASSIGN(const hal::ExtensionOperandType type,
                  driverOperandType(static_cast<int32_t>(operand->type)));
    operand->driverElementSize = type.elementSize;
    operand->isRankZeroTensor = !type.isTensor;
    return !type.isTensor;
  }
  const graph::OperandTypeInfo* const info = graph::findOperandType(operand->type);
  if (info == nullptr)
    return fail(ErrorCode::kBadData, "The {} is unknown.", graph::nameOf(operand->type));
  return info->isScalar;
}

}  // namespace

Result<graph::Operand> toOperand(const ANeuralNetworksOperandType& type) {
  graph::Operand operand;
  operand.type = static_cast<graph::OperandType>(type.type);
  HEARTH_ASSIGN(const bool isTypeScalar, setElementSize(&operand));
  const std::string name = graph::nameOf(operand.type);
  if (isTypeScalar && type.dimensionCount != 0)
    return fail(ErrorCode::kBadData, "The scalar {} has {} dimensions.", name, type.dimensionCount);
  if ((type.dimensionCount == 0) != (type.dimensions == nullptr))
    return fail(ErrorCode::kBadData, "{} has {} dimensions and {} pointer to them.", name,
                type.dimensionCount, type.dimensions == nullptr ? "no" : "a");
  if (type.dimensionCount != 0)
    operand.dimensions.assign(type.dimensions, type.dimensions + type.dimensionCount);
  operand.scale = type.scale;
  operand.zeroPoint = type.zeroPoint;
  HEARTH_TRY(checkQuantization(operand));
  HEARTH_TRY(checkSize(operand));
  return operand;
}

Result<graph::Dimensions> combineDimensions(const graph::Dimensions& a,
                                            const graph::Dimensions& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  bool fits = a.size() == b.size();
  graph::Dimensions combined = a;
  for (size_t i = 0; fits && i < a.size(); ++i) {
    fits = a[i] == 0 || b[i] == 0 || a[i] == b[i];
    if (combined[i] == 0) combined[i] = b[i];
  }
  if (!fits)
    return fail(ErrorCode::kBadData, "The dimensions {} and {} contradict each other.",
                graph::describeDimensions(a), graph::describeDimensions(b));
  return combined;
}

}  // namespace hearth::nnapi
