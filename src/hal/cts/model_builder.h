// SPDX-License-Identifier: Apache-2.0
// Small models for the suites.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/model.h"

namespace hearth::hal::cts {

// Adds operands and operations to one subgraph of a model, at first to the main one. All indices
// are operand indices in that subgraph.
class ModelBuilder {
 public:
  ModelBuilder() { model_.subgraphs.resize(1); }

  uint32_t input(graph::OperandType type, graph::Dimensions dimensions, float scale = 0.0f,
                 int32_t zeroPoint = 0);
  uint32_t output(graph::OperandType type, graph::Dimensions dimensions, float scale = 0.0f,
                  int32_t zeroPoint = 0);
  uint32_t temporary(graph::OperandType type, graph::Dimensions dimensions, float scale = 0.0f,
                     int32_t zeroPoint = 0);
  uint32_t omitted(graph::OperandType type);

  // A constant that the model copies.
  template <typename T>
  uint32_t constant(graph::OperandType type, graph::Dimensions dimensions,
                    const std::vector<T>& values, float scale = 0.0f, int32_t zeroPoint = 0) {
    return copiedConstant(make(type, std::move(dimensions), scale, zeroPoint), values.data(),
                          values.size() * sizeof(T));
  }
  uint32_t scalar(int32_t value);
  uint32_t scalar(float value);
  uint32_t scalar(bool value);
  // A constant in a pool of the caller.
  uint32_t reference(graph::OperandType type, graph::Dimensions dimensions, memory::PoolRef pool,
                     uint64_t offset, float scale = 0.0f, int32_t zeroPoint = 0);

  // Begins a new subgraph, to which the following calls add; returns its index.
  uint32_t beginSubgraph();
  void returnToMain() { current_ = 0; }
  uint32_t subgraphOperand(uint32_t subgraph);

  void operation(graph::OperationType type, std::vector<uint32_t> inputs,
                 std::vector<uint32_t> outputs);

  const graph::Model& model() const { return model_; }

 private:
  static graph::Operand make(graph::OperandType type, graph::Dimensions dimensions, float scale,
                             int32_t zeroPoint);
  uint32_t add(graph::Operand operand);
  // An input or output, which `list` names.
  uint32_t addTo(std::vector<uint32_t>& list, graph::Operand operand, graph::Lifetime lifetime);
  uint32_t copiedConstant(graph::Operand operand, const void* data, size_t size);
  graph::Subgraph& current() { return model_.subgraphs[current_]; }

  graph::Model model_;
  size_t current_ = 0;
};

// sum = a + b of TENSOR_FLOAT32; inputs a, b.
graph::Model addModel(const graph::Dimensions& a, const graph::Dimensions& b,
                      const graph::Dimensions& sum);
inline graph::Model addModel(const graph::Dimensions& dimensions) {
  return addModel(dimensions, dimensions, dimensions);
}

// A 3x3 convolution with SAME padding of [1, size, size, 3] to [1, size, size, 4], with constant
// float weights by copy: every weight is 1, the biases are 0, 1, 2, 3.
graph::Model convolutionModel(uint32_t size);

// out = (a + b) * a - b through temporaries, TENSOR_FLOAT32.
graph::Model chainModel(const graph::Dimensions& dimensions);

// Models for several kinds of kernels: element-wise, convolutions, fully connected, pooling,
// softmax, data movement; float32 and quantised. Sizes are odd, so that they are never a multiple
// of a vector.
struct NamedModel {
  std::string name;
  graph::Model model;
};
std::vector<NamedModel> sampleModels();

}  // namespace hearth::hal::cts
