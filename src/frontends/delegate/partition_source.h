// SPDX-License-Identifier: Apache-2.0
// What a partition of the runtime's graph computes, copied from the runtime's structures: these are
// valid during some of its calls only, and a partition is compiled again whenever the shapes of its
// inputs change.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/model.h"
#include "memory/pool.h"
#include "tflite_schema_generated.h"

namespace hearth::delegate {

// The bytes of a constant.
struct ConstantPlace {
  memory::PoolRef pool;
  uint64_t offset = 0;
  uint64_t length = 0;
};

struct SourceSparsity {
  struct Dimension {
    tflite::schema::DimensionType format = tflite::schema::DimensionType::DENSE;
    int32_t denseSize = 0;
    std::vector<int32_t> segments;
    std::vector<int32_t> indices;
  };
  std::vector<int32_t> traversalOrder;
  std::vector<int32_t> blockMap;
  std::vector<Dimension> dimensions;
};

struct SourceTensor {
  std::string name;
  tflite::schema::TensorType type = tflite::schema::TensorType::FLOAT32;
  graph::Dimensions dimensions;
  // Which dimensions the model leaves open; empty = none.
  std::vector<bool> isOpen;
  // Shared, since a table of a language model has some hundred thousand; null = none.
  std::shared_ptr<const std::vector<float>> scales;
  std::vector<int64_t> zeroPoints;  // one where all are the same
  int32_t quantizedDimension = 0;
  // The tensor with the scales, if this one is quantised by blocks; else -1.
  int32_t blockScales = -1;
  int32_t blockZeroPoints = -1;
  int32_t blockSize = 0;
  std::optional<SourceSparsity> sparsity;
  std::optional<ConstantPlace> constant;
  bool isVariable = false;
};

// Writes the options of an operation; its table is one of `optionsType` or `optionsType2`.
using OptionsWriter =
    std::function<flatbuffers::Offset<void>(flatbuffers::FlatBufferBuilder& builder)>;

struct SourceNode {
  tflite::schema::BuiltinOperator code = tflite::schema::BuiltinOperator::CUSTOM;
  int32_t version = 1;
  std::string customCode;
  std::vector<int32_t> inputs;  // tensors of the runtime; -1 = omitted
  std::vector<int32_t> outputs;
  std::vector<int32_t> intermediates;
  tflite::schema::BuiltinOptions optionsType = tflite::schema::BuiltinOptions::NONE;
  tflite::schema::BuiltinOptions2 optionsType2 = tflite::schema::BuiltinOptions2::NONE;
  OptionsWriter options;
  std::vector<uint8_t> customOptions;
};

// Value type. Nodes are in run order; `tensors` has every tensor that they name.
struct PartitionSource {
  std::vector<SourceNode> nodes;
  std::map<int32_t, SourceTensor> tensors;
  // Without constants and variables.
  std::vector<int32_t> inputs;
  std::vector<int32_t> outputs;
  // The runtime reads its graph from the file in which all constants lie, so the file's content
  // tells all of the partition but the shapes of its inputs.
  bool isOfFile = false;
};

}  // namespace hearth::delegate
