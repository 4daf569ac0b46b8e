// SPDX-License-Identifier: Apache-2.0
// The elements of a tensor, one at a time, by what they stand for.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "ops/half.h"
#include "ops/operation.h"

namespace hearth::ops::plain {

using Index = std::vector<int64_t>;  // one number for each dimension

inline int64_t countOf(const Dimensions& dimensions) {
  int64_t count = 1;
  for (const uint32_t dimension : dimensions) count *= dimension;
  return count;
}

// The place of an element in row-major order. An index outside the tensor is a wrong shape.
inline int64_t placeOf(const Index& index, const Dimensions& dimensions) {
  if (index.size() != dimensions.size()) std::abort();
  int64_t place = 0;
  for (size_t i = 0; i < index.size(); ++i) {
    if (index[i] < 0 || index[i] >= dimensions[i]) std::abort();
    place = place * dimensions[i] + index[i];
  }
  return place;
}

// Calls visit(index, place) for every element.
template <typename Visit>
void forEach(const Dimensions& dimensions, const Visit& visit) {
  Index index(dimensions.size(), 0);
  const int64_t count = countOf(dimensions);
  for (int64_t place = 0; place < count; ++place) {
    visit(index, place);
    for (size_t i = index.size(); i-- > 0;) {
      if (++index[i] < dimensions[i]) break;
      index[i] = 0;
    }
  }
}

// Where an element of `output` comes from in a tensor that is broadcast to it.
inline int64_t broadcastPlace(const Index& output, const Dimensions& input) {
  Index index(input.size());
  for (size_t i = 0; i < input.size(); ++i)
    index[i] = input[i] == 1 ? 0 : output[output.size() - input.size() + i];
  return placeOf(index, input);
}

template <typename T>
T loadAs(const Tensor& tensor, int64_t place) {
  T value;
  std::memcpy(&value, tensor.as<uint8_t>() + place * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void storeAs(const Tensor& tensor, int64_t place, T value) {
  std::memcpy(tensor.as<uint8_t>() + place * sizeof(T), &value, sizeof(T));
}

inline bool isInteger(OperandType type) {
  return type == OperandType::kTensorInt32 || type == OperandType::kTensorInt64 ||
         type == OperandType::kTensorBool8 || type == OperandType::kInt32 ||
         type == OperandType::kBool;
}

inline int64_t integerAt(const Tensor& tensor, int64_t place) {
  switch (tensor.type()) {
    case OperandType::kTensorInt64:
      return loadAs<int64_t>(tensor, place);
    case OperandType::kTensorInt32:
    case OperandType::kInt32:
      return loadAs<int32_t>(tensor, place);
    case OperandType::kTensorBool8:
    case OperandType::kBool:
      return loadAs<uint8_t>(tensor, place);
    default:
      std::abort();
  }
}

// What is too large loses its upper bits.
inline void putInteger(const Tensor& tensor, int64_t place, int64_t value) {
  switch (tensor.type()) {
    case OperandType::kTensorInt64:
      return storeAs(tensor, place, value);
    case OperandType::kTensorInt32:
      return storeAs(tensor, place, static_cast<int32_t>(static_cast<uint64_t>(value)));
    case OperandType::kTensorBool8:
      return storeAs(tensor, place, static_cast<uint8_t>(value));
    default:
      std::abort();
  }
}

inline double realAt(const Tensor& tensor, int64_t place) {
  const graph::Operand& operand = *tensor.operand;
  const auto steps = [&](double stored) {
    return operand.scale * (stored - operand.zeroPoint);
  };
  switch (tensor.type()) {
    case OperandType::kTensorFloat32:
    case OperandType::kFloat32:
      return loadAs<float>(tensor, place);
    case OperandType::kTensorFloat16:
    case OperandType::kFloat16:
      return static_cast<double>(loadAs<Half>(tensor, place));
    case OperandType::kTensorQuant8Asymm:
      return steps(loadAs<uint8_t>(tensor, place));
    case OperandType::kTensorQuant8AsymmSigned:
      return steps(loadAs<int8_t>(tensor, place));
    case OperandType::kTensorQuant16Symm:
      return steps(loadAs<int16_t>(tensor, place));
    case OperandType::kTensorQuant8SymmPerChannel: {
      int64_t inner = 1;
      for (size_t i = operand.perChannel.channelDim + 1; i < tensor.rank(); ++i)
        inner *= tensor.dimensions[i];
      const auto channel = static_cast<size_t>(place / inner) % operand.perChannel.scales.size();
      return static_cast<double>(operand.perChannel.scales[channel]) *
             loadAs<int8_t>(tensor, place);
    }
    default:
      return static_cast<double>(integerAt(tensor, place));
  }
}

template <typename T>
void putSteps(const Tensor& tensor, int64_t place, double value) {
  const double stored =
      std::round(value / double{tensor.operand->scale}) + tensor.operand->zeroPoint;
  storeAs(tensor, place,
          static_cast<T>(std::clamp(stored, double{std::numeric_limits<T>::min()},
                                    double{std::numeric_limits<T>::max()})));
}

// The nearest number that there is.
inline void putReal(const Tensor& tensor, int64_t place, double value) {
  switch (tensor.type()) {
    case OperandType::kTensorFloat32:
      return storeAs(tensor, place, static_cast<float>(value));
    case OperandType::kTensorFloat16:
      return storeAs(tensor, place, static_cast<Half>(value));
    case OperandType::kTensorQuant8Asymm:
      return putSteps<uint8_t>(tensor, place, value);
    case OperandType::kTensorQuant8AsymmSigned:
      return putSteps<int8_t>(tensor, place, value);
    case OperandType::kTensorQuant16Symm:
      return putSteps<int16_t>(tensor, place, value);
    default:
      std::abort();
  }
}

// The very bytes of one element.
inline void copyElement(const Tensor& from, int64_t fromPlace, const Tensor& to, int64_t toPlace) {
  const size_t size = graph::elementSize(to.type());
  std::memcpy(to.as<uint8_t>() + static_cast<size_t>(toPlace) * size,
              from.as<uint8_t>() + static_cast<size_t>(fromPlace) * size, size);
}

inline int64_t scalarAt(const OperationContext& context, size_t input) {
  return integerAt(context.inputs[input], 0);
}

inline Index numbersAt(const OperationContext& context, size_t input) {
  Index numbers;
  for (int64_t i = 0; i < countOf(context.inputs[input].dimensions); ++i)
    numbers.push_back(integerAt(context.inputs[input], i));
  return numbers;
}

// An axis as it is counted from the front.
inline size_t axisOf(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

// NNAPI's FuseCode.
inline double activate(double value, int64_t code) {
  if (code == 1) return std::max(value, 0.0);
  if (code == 2) return std::clamp(value, -1.0, 1.0);
  if (code == 3) return std::clamp(value, 0.0, 6.0);
  return value;
}

}  // namespace hearth::ops::plain
