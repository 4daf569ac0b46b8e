// SPDX-License-Identifier: Apache-2.0
// Access to the elements of a tensor, one at a time, as numbers.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "ops/activation.h"
#include "ops/operation.h"

namespace hearth::ops::reference {

using Index = std::vector<int64_t>;  // one number for each dimension

inline int64_t countOf(const Dimensions& dimensions) {
  int64_t count = 1;
  for (const uint32_t dimension : dimensions) count *= dimension;
  return count;
}

// The place of an element: its index in row-major order. `index` lies inside the tensor.
inline int64_t placeOf(std::span<const int64_t> index, const Dimensions& dimensions) {
  int64_t place = 0;
  for (size_t i = 0; i < index.size(); ++i) place = place * dimensions[i] + index[i];
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

// The place, in a tensor that is broadcast to `output`'s shape, of the element at `output`.
inline int64_t broadcastPlace(const Index& output, const Dimensions& input) {
  int64_t place = 0;
  for (size_t i = 0; i < input.size(); ++i) {
    const int64_t at = input[i] == 1 ? 0 : output[output.size() - input.size() + i];
    place = place * input[i] + at;
  }
  return place;
}

// Calls visit(place, step, size) for each row along an axis: the place of its first element, the
// distance between its elements, and how many there are. Never for an empty tensor.
template <typename Visit>
void forEachRow(const Dimensions& dimensions, size_t axis, const Visit& visit) {
  if (countOf(dimensions) == 0) return;
  int64_t step = 1;
  for (size_t i = axis + 1; i < dimensions.size(); ++i) step *= dimensions[i];
  const int64_t size = dimensions[axis];
  for (int64_t first = 0; first < countOf(dimensions); first += step * size)
    for (int64_t i = 0; i < step; ++i) visit(first + i, step, size);
}

template <typename T>
T loadAs(const Tensor& tensor, int64_t place) {
  T value;
  std::memcpy(&value, tensor.as<uint8_t>() + place * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
void storeAs(const Tensor& tensor, int64_t place, T value) {
  std::memcpy(tensor.as<uint8_t>() + place * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

// float16, float32 and float64.
bool isFloat(OperandType type);
// INT32, INT64 and truth values, scalars as well.
bool isInteger(OperandType type);
// An element of such a type.
int64_t integerAt(const Tensor& tensor, int64_t place);
// A value that is too large loses its upper bits.
void putInteger(const Tensor& tensor, int64_t place, int64_t value);

// The number that an element of a floating-point, quantised or integer type represents.
double realAt(const Tensor& tensor, int64_t place);
// Stores the nearest number of the type. Of two equally near ones it is the one further from 0, for
// floats the even one. NaN becomes the zero point of a quantised type.
void putReal(const Tensor& tensor, int64_t place, double value);

// An element of a quantised type as it is stored.
int32_t storedAt(const Tensor& tensor, int64_t place);
// `value` is clamped to the range of the type.
void putStored(const Tensor& tensor, int64_t place, int32_t value);

// Copies the bytes of one element.
void copyElement(const Tensor& from, int64_t fromPlace, const Tensor& to, int64_t toPlace);

// The activation of a real number. NaN passes unchanged.
double activate(double value, FusedActivation activation);

}  // namespace hearth::ops::reference
