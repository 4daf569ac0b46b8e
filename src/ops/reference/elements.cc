// SPDX-License-Identifier: Apache-2.0
#include "ops/reference/elements.h"

#include <limits>

#include "ops/half.h"
#include "ops/int4.h"
#include "ops/quantization.h"

namespace hearth::ops::reference {
namespace {

// The scale of an element; with a scale for each channel, that of its channel.
double scaleAt(const Tensor& tensor, int64_t place) {
  const graph::PerChannelQuantization& channels = tensor.operand->perChannel;
  if (channels.scales.empty()) return stepOf(*tensor.operand);
  int64_t inner = 1;
  for (size_t i = channels.channelDim + 1; i < tensor.rank(); ++i) inner *= tensor.dimensions[i];
  return channels.scales[static_cast<size_t>(place / inner) % channels.scales.size()];
}

}  // namespace

bool isFloat(OperandType type) {
  return type == OperandType::kTensorFloat32 || type == OperandType::kTensorFloat16 ||
         type == OperandType::kTensorFloat64;
}

bool isInteger(OperandType type) {
  return type == OperandType::kTensorInt32 || type == OperandType::kTensorInt64 ||
         type == OperandType::kTensorBool8 || type == OperandType::kInt32 ||
         type == OperandType::kBool;
}

int64_t integerAt(const Tensor& tensor, int64_t place) {
  switch (tensor.type()) {
    case OperandType::kTensorInt64:
      return loadAs<int64_t>(tensor, place);
    case OperandType::kTensorInt32:
    case OperandType::kInt32:
      return loadAs<int32_t>(tensor, place);
    default:
      return loadAs<uint8_t>(tensor, place);
  }
}

void putInteger(const Tensor& tensor, int64_t place, int64_t value) {
  switch (tensor.type()) {
    case OperandType::kTensorInt64:
      return storeAs(tensor, place, value);
    case OperandType::kTensorInt32:
    case OperandType::kInt32:
      return storeAs(tensor, place, static_cast<int32_t>(static_cast<uint64_t>(value)));
    default:
      return storeAs(tensor, place, static_cast<uint8_t>(value));
  }
}

int32_t storedAt(const Tensor& tensor, int64_t place) {
  switch (tensor.type()) {
    case OperandType::kTensorQuant8Asymm:
      return loadAs<uint8_t>(tensor, place);
    case OperandType::kTensorQuant16Symm:
    case OperandType::kTensorInt16:
      return loadAs<int16_t>(tensor, place);
    case OperandType::kTensorQuant16Asymm:
    case OperandType::kTensorUint16:
      return loadAs<uint16_t>(tensor, place);
    case OperandType::kTensorInt4:
      return int4At(tensor.as<uint8_t>(), static_cast<uint64_t>(place));
    default:
      return loadAs<int8_t>(tensor, place);
  }
}

void putStored(const Tensor& tensor, int64_t place, int32_t value) {
  switch (tensor.type()) {
    case OperandType::kTensorQuant16Symm:
    case OperandType::kTensorQuant16Asymm:
    case OperandType::kTensorInt16:
    case OperandType::kTensorUint16:
      return storeAs(tensor, place, static_cast<uint16_t>(value));
    default:
      return storeAs(tensor, place, static_cast<uint8_t>(value));
  }
}

double realAt(const Tensor& tensor, int64_t place) {
  switch (tensor.type()) {
    case OperandType::kTensorFloat32:
    case OperandType::kFloat32:
      return loadAs<float>(tensor, place);
    case OperandType::kTensorFloat16:
    case OperandType::kFloat16:
      return static_cast<double>(loadAs<Half>(tensor, place));
    case OperandType::kTensorFloat64:
      return loadAs<double>(tensor, place);
    default:
      break;
  }
  if (isInteger(tensor.type())) return static_cast<double>(integerAt(tensor, place));
  return scaleAt(tensor, place) *
         (static_cast<double>(storedAt(tensor, place)) - tensor.operand->zeroPoint);
}

void putReal(const Tensor& tensor, int64_t place, double value) {
  switch (tensor.type()) {
    case OperandType::kTensorFloat32:
      return storeAs(tensor, place, static_cast<float>(value));
    case OperandType::kTensorFloat16:
      return storeAs(tensor, place, static_cast<Half>(value));
    case OperandType::kTensorFloat64:
      return storeAs(tensor, place, value);
    default:
      return putStored(tensor, place, quantize(value, *tensor.operand));
  }
}

void copyElement(const Tensor& from, int64_t fromPlace, const Tensor& to, int64_t toPlace) {
  const size_t size = graph::elementSize(to.type());
  std::memmove(to.as<uint8_t>() + static_cast<size_t>(toPlace) * size,
               from.as<uint8_t>() + static_cast<size_t>(fromPlace) * size, size);
}

double activate(double value, FusedActivation activation) {
  const ActivationRange range = activationRange(activation);
  if (value < double{range.lowest}) return range.lowest;
  if (value > double{range.highest}) return range.highest;
  return value;
}

}  // namespace hearth::ops::reference
