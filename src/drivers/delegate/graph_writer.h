// SPDX-License-Identifier: Apache-2.0
// A model in the terms of TensorFlow Lite: what a delegate is offered.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/model.h"
#include "tflite_abi/builtin_codes.h"
#include "tflite_abi/structures.h"

namespace hearth::drivers::delegate {

struct WrittenTensor {
  TfLiteType type = kTfLiteNoType;
  std::vector<int32_t> dims;
  std::vector<float> scales;  // none, one, or one for each index of a dimension
  std::vector<int32_t> zeroPoints;
  int32_t channelDimension = 0;
  uint64_t bytes = 0;
  const uint8_t* data = nullptr;  // of a constant
  bool isVariable = false;        // keeps what a node leaves in it
  std::string name;
};

struct WrittenNode {
  size_t operation = 0;  // of the model
  tflite_abi::Builtin code = tflite_abi::Builtin::kAdd;
  int32_t version = 1;
  std::vector<int32_t> inputs;  // tensors; -1: omitted
  std::vector<int32_t> outputs;
  std::vector<int32_t> intermediates;  // tensors without values, for their quantisation
  std::vector<uint8_t> parameters;     // the bytes of the operation's structure of parameters
  // Of a custom operation, which has no parameters.
  std::string customName;
  std::vector<uint8_t> customOptions;
};

// Move-only: tensors point into `values` and into the model.
struct WrittenGraph {
  std::shared_ptr<const graph::Model> model;
  std::vector<WrittenTensor> tensors;
  std::vector<WrittenNode> nodes;  // in run order
  // The tensor of each input and output of the main subgraph; -1 for one that no tensor stands for.
  // A state is an input and an output, and one variable stands for both.
  std::vector<int32_t> inputs;
  std::vector<int32_t> outputs;
  std::vector<int32_t> ofOperand;  // the tensor of each operand; -1 if it has none
  // For each operation of the main subgraph the sentence why TensorFlow Lite cannot express it;
  // empty for those that have nodes, and for those of which only the result is written, a constant.
  std::vector<std::string> refusals;
  // A list whose elements stay where they are when it grows, since they are lists.
  std::vector<std::vector<uint64_t>> values;  // of constants that the model lacks or has elsewhere

  bool isVariable(int32_t tensor) const { return tensors[static_cast<size_t>(tensor)].isVariable; }

  WrittenGraph() = default;
  WrittenGraph(WrittenGraph&&) noexcept = default;
  WrittenGraph& operator=(WrittenGraph&&) noexcept = default;
};

// Writes the main subgraph of a model that has passed graph::validate() and in which the shapes of
// all operands are known (ops::specialize()). Operations that are newer than `version`, that
// TensorFlow Lite lacks, or whose arguments it cannot express become refusals. The model's memory
// is used in place where it is aligned.
WrittenGraph writeGraph(std::shared_ptr<const graph::Model> model,
                        tflite_abi::TensorflowMinor version);

}  // namespace hearth::drivers::delegate
