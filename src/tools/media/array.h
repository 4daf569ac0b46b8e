// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hearth/hearth.hpp"

namespace hearth::tools {

// A dense tensor in row-major order. Value type.
struct Array {
  hearth_type type = HEARTH_TYPE_UINT8;
  std::vector<uint64_t> shape;
  std::vector<uint8_t> bytes;
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

}  // namespace hearth::tools
