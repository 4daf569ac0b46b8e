// SPDX-License-Identifier: Apache-2.0
// Tensors as the file declares them, for front ends that name them by their index in the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hearth::tflite {

struct FileTensor {
  std::string name;
  int32_t type = 0;                     // TensorType of the file format
  std::vector<int32_t> shape;           // mostly 1 where the signature has -1
  std::vector<int32_t> shapeSignature;  // -1 = unknown; empty when the file has none
  std::vector<float> scales;
  std::vector<int64_t> zeroPoints;  // as many as `scales`
  int32_t quantizedDimension = 0;
  // Of a constant, in the file's memory; else empty.
  std::span<const uint8_t> value;
  bool isVariable = false;
};

struct FileSubgraph {
  std::string name;
  size_t tensorCount = 0;
  // Indices of tensors, all of which exist.
  std::vector<int32_t> inputs;
  std::vector<int32_t> outputs;
  std::vector<int32_t> variables;
};

}  // namespace hearth::tflite
