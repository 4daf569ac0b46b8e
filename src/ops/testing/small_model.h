// SPDX-License-Identifier: Apache-2.0
// For tests: builds a model of one subgraph, whose constants are copied. A value of the test's own.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "graph/model.h"
#include "ops/operation.h"

namespace hearth::ops {

class SmallModel {
 public:
  SmallModel() { model_.subgraphs.resize(1); }

  uint32_t add(OperandType type, Dimensions dimensions, graph::Lifetime lifetime) {
    graph::Operand operand;
    operand.type = type;
    operand.dimensions = std::move(dimensions);
    operand.lifetime = lifetime;
    graph::Subgraph& main = model_.main();
    const auto index = static_cast<uint32_t>(main.operands.size());
    if (lifetime == graph::Lifetime::kSubgraphInput) main.inputs.push_back(index);
    if (lifetime == graph::Lifetime::kSubgraphOutput) main.outputs.push_back(index);
    main.operands.push_back(std::move(operand));
    return index;
  }
  uint32_t input(Dimensions dimensions, OperandType type = OperandType::kTensorFloat32) {
    return add(type, std::move(dimensions), graph::Lifetime::kSubgraphInput);
  }
  uint32_t output(OperandType type = OperandType::kTensorFloat32, Dimensions dimensions = {}) {
    return add(type, std::move(dimensions), graph::Lifetime::kSubgraphOutput);
  }
  uint32_t temporary(OperandType type, Dimensions dimensions = {}) {
    return add(type, std::move(dimensions), graph::Lifetime::kTemporary);
  }

  // A constant tensor; T has the size of an element.
  template <typename T>
  uint32_t tensor(OperandType type, Dimensions dimensions, const std::vector<T>& values) {
    const uint32_t index = add(type, std::move(dimensions), graph::Lifetime::kConstantCopy);
    const auto* const first = reinterpret_cast<const uint8_t*>(values.data());
    const size_t bytes = values.size() * sizeof(T);
    model_.main().operands[index].location = {0, model_.constantBytes.size(), bytes};
    model_.constantBytes.insert(model_.constantBytes.end(), first, first + bytes);
    return index;
  }
  uint32_t constant(const std::vector<int32_t>& values, bool isScalar = false) {
    return tensor(isScalar ? OperandType::kInt32 : OperandType::kTensorInt32,
                  isScalar ? Dimensions() : Dimensions{static_cast<uint32_t>(values.size())},
                  values);
  }
  uint32_t scalar(int32_t value) { return constant({value}, true); }

  void setQuantization(uint32_t operand, float scale, int32_t zeroPoint) {
    model_.main().operands[operand].scale = scale;
    model_.main().operands[operand].zeroPoint = zeroPoint;
  }

  void operation(OperationType type, std::vector<uint32_t> inputs, std::vector<uint32_t> outputs) {
    model_.main().operations.push_back({type, std::move(inputs), std::move(outputs), ""});
  }

  // The model, which has to be valid.
  const graph::Model& model() {
    const Status valid = graph::validate(model_);
    EXPECT_TRUE(valid) << valid.error().toString();
    const Status operations = validateOperations(model_);
    EXPECT_TRUE(operations) << operations.error().toString();
    return model_;
  }

 private:
  graph::Model model_;
};

}  // namespace hearth::ops
