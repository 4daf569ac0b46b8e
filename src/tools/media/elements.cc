// SPDX-License-Identifier: Apache-2.0
#include "tools/media/elements.h"

#include <cmath>
#include <cstring>

namespace hearth::tools {
namespace {

template <typename T>
std::vector<double> widen(const TensorBytes& bytes) {
  std::vector<double> numbers(bytes.size() / sizeof(T));
  for (size_t i = 0; i < numbers.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    numbers[i] = static_cast<double>(value);
  }
  return numbers;
}

std::vector<double> unpackInt4(const Array& array) {
  uint64_t count = 1;
  for (const uint64_t dimension : array.shape) count *= dimension;
  std::vector<double> numbers;
  for (uint64_t i = 0; i < count && i / 2 < array.bytes.size(); ++i) {
    const int nibble = array.bytes[i / 2] >> (i % 2 * 4) & 15;
    numbers.push_back(nibble >= 8 ? nibble - 16 : nibble);
  }
  return numbers;
}

std::vector<double> magnitudes(const TensorBytes& bytes) {
  const std::vector<double> parts = widen<float>(bytes);
  std::vector<double> numbers(parts.size() / 2);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = std::hypot(parts[2 * i], parts[2 * i + 1]);
  return numbers;
}

}  // namespace

std::vector<double> toNumbers(const Array& array) {
  switch (array.type) {
    case HEARTH_TYPE_FLOAT32:
      return widen<float>(array.bytes);
    case HEARTH_TYPE_FLOAT16:
      return widen<_Float16>(array.bytes);
    case HEARTH_TYPE_FLOAT64:
      return widen<double>(array.bytes);
    case HEARTH_TYPE_INT8:
      return widen<int8_t>(array.bytes);
    case HEARTH_TYPE_UINT8:
    case HEARTH_TYPE_BOOL:
      return widen<uint8_t>(array.bytes);
    case HEARTH_TYPE_INT16:
      return widen<int16_t>(array.bytes);
    case HEARTH_TYPE_UINT16:
      return widen<uint16_t>(array.bytes);
    case HEARTH_TYPE_INT32:
      return widen<int32_t>(array.bytes);
    case HEARTH_TYPE_UINT32:
      return widen<uint32_t>(array.bytes);
    case HEARTH_TYPE_INT64:
      return widen<int64_t>(array.bytes);
    case HEARTH_TYPE_UINT64:
      return widen<uint64_t>(array.bytes);
    case HEARTH_TYPE_INT4:
      return unpackInt4(array);
    case HEARTH_TYPE_COMPLEX64:
      return magnitudes(array.bytes);
    case HEARTH_TYPE_STRING:
      break;
  }
  return {};
}

}  // namespace hearth::tools
