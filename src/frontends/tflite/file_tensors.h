// SPDX-License-Identifier: Apache-2.0
// Tensors as the file declares them, for front ends that name them by their index in the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hearth::tflite {

namespace schema {
struct SparsityParameters;
}

// How a tensor that is quantised by blocks finds its scales.
struct FileBlocks {
  int32_t scales = -1;      // a tensor of the subgraph; -1: it is not quantised by blocks
  int32_t zeroPoints = -1;  // likewise
  int32_t size = 0;         // elements of a block
};

struct FileTensor {
  std::string name;
  int32_t type = 0;                     // TensorType of the file format
  std::vector<int32_t> shape;           // mostly 1 where the signature has -1
  std::vector<int32_t> shapeSignature;  // -1 = unknown; empty when the file has none
  std::vector<float> scales;
  std::vector<int64_t> zeroPoints;  // as many as `scales`
  int32_t quantizedDimension = 0;
  FileBlocks blocks;
  const schema::SparsityParameters* sparsity = nullptr;  // in the file's memory
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
