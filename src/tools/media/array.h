// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "hearth/hearth.hpp"

namespace hearth::tools {

// Allocates memory aligned to a cache line.
template <typename T>
struct CacheLineAllocator {
  static constexpr std::align_val_t kCacheLine{64};
  using value_type = T;

  T* allocate(size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), kCacheLine));
  }
  void deallocate(T* memory, size_t) { ::operator delete(memory, kCacheLine); }
  friend bool operator==(const CacheLineAllocator&, const CacheLineAllocator&) = default;
};

using TensorBytes = std::vector<uint8_t, CacheLineAllocator<uint8_t>>;

// A dense tensor in row-major order. Value type.
struct Array {
  hearth_type type = HEARTH_TYPE_UINT8;
  std::vector<uint64_t> shape;
  TensorBytes bytes;
};

// "[1,224,224,3]"
template <typename Integer>
std::string shapeText(const std::vector<Integer>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ",";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

// "[?=1,224,224,3]": a dimension of 0 is not known, and stands for that of `defaults` unless it is
// given.
template <typename Integer>
std::string shapeText(const std::vector<Integer>& shape, const std::vector<Integer>& defaults) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ",";
    if (shape[i] != 0) {
      text += std::to_string(shape[i]);
    } else {
      text += "?";
      if (i < defaults.size() && defaults[i] != 0) text += "=" + std::to_string(defaults[i]);
    }
  }
  return text + "]";
}

inline std::string shapeText(const TensorInfo& tensor) {
  return shapeText(tensor.dimensions, tensor.defaultDimensions);
}

}  // namespace hearth::tools
