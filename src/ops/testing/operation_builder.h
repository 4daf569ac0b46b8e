// SPDX-License-Identifier: Apache-2.0
// For tests: builds a model of one operation, validates it, prepares and runs its kernel, and
// compares the results with those of its reference kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <utility>
#include <vector>

#include "base/result.h"
#include "graph/model.h"
#include "ops/half.h"
#include "ops/operation.h"
#include "ops/testing/reference_comparison.h"

namespace hearth::ops {

// Types of tensors.
inline constexpr auto kFloat = OperandType::kTensorFloat32, kInt32 = OperandType::kTensorInt32,
                      kInt64 = OperandType::kTensorInt64, kBool8 = OperandType::kTensorBool8,
                      kUint8 = OperandType::kTensorQuant8Asymm,
                      kInt8 = OperandType::kTensorQuant8AsymmSigned,
                      kInt16 = OperandType::kTensorQuant16Symm;

// Arguments are added in NNAPI's order. Owns all values. A failing step's error is what run()
// returns. Not thread-safe.
class OperationBuilder {
 public:
  explicit OperationBuilder(OperationType type) { operation_.type = type; }

  // A run-time input with its value; T must match the element type in size.
  template <typename T>
  OperationBuilder& input(graph::Operand operand, std::vector<T> values) {
    operand.lifetime = graph::Lifetime::kSubgraphInput;
    return add(std::move(operand), values.data(), values.size() * sizeof(T));
  }
  OperationBuilder& input(Dimensions dimensions, std::vector<float> values) {
    return input(tensor(OperandType::kTensorFloat32, std::move(dimensions)), std::move(values));
  }
  OperationBuilder& input(Dimensions dimensions, std::vector<Half> values) {
    return input(tensor(OperandType::kTensorFloat16, std::move(dimensions)), std::move(values));
  }
  OperationBuilder& input(Dimensions dimensions, std::vector<int32_t> values) {
    return input(tensor(OperandType::kTensorInt32, std::move(dimensions)), std::move(values));
  }
  // A constant tensor; T must match the element type in size.
  template <typename T>
  OperationBuilder& constant(graph::Operand operand, const std::vector<T>& values) {
    operand.lifetime = graph::Lifetime::kConstantCopy;
    return add(std::move(operand), values.data(), values.size() * sizeof(T));
  }
  // A constant scalar of type INT32, FLOAT32, FLOAT16 or BOOL.
  OperationBuilder& scalar(int32_t value) { return scalar(OperandType::kInt32, value); }
  OperationBuilder& scalar(float value) { return scalar(OperandType::kFloat32, value); }
  OperationBuilder& scalar(Half value) { return scalar(OperandType::kFloat16, value); }
  OperationBuilder& scalar(bool value) { return scalar(OperandType::kBool, uint8_t{value}); }
  OperationBuilder& scalars(std::initializer_list<int32_t> values) {
    for (int32_t value : values) scalar(value);
    return *this;
  }
  // An omitted argument of this type.
  OperationBuilder& omitted(OperandType type) {
    graph::Operand operand = tensor(type, {});
    operand.lifetime = graph::Lifetime::kNoValue;
    return add(std::move(operand), nullptr, 0);
  }
  // An output; the dimensions may be unknown.
  OperationBuilder& output(graph::Operand operand) {
    operand.lifetime = graph::Lifetime::kSubgraphOutput;
    operation_.outputs.push_back(static_cast<uint32_t>(subgraph_.operands.size()));
    subgraph_.operands.push_back(std::move(operand));
    values_.emplace_back();
    return *this;
  }
  OperationBuilder& output(OperandType type = OperandType::kTensorFloat32) {
    return output(tensor(type, {}));
  }

  OperationBuilder& omittedOutput(graph::Operand operand) {
    output(std::move(operand));
    subgraph_.operands.back().lifetime = graph::Lifetime::kNoValue;
    return *this;
  }

  // Dimensions of 0 are then sizes instead of unknown; for run() only.
  OperationBuilder& inputShapesAreKnown() {
    areInputShapesKnown_ = true;
    return *this;
  }

  // run() fails before it allocates more output elements than this.
  OperationBuilder& limitOutput(uint64_t elements) {
    maximumOutput_ = elements;
    return *this;
  }

  static graph::Operand tensor(OperandType type, Dimensions dimensions, float scale = 0.0f,
                               int32_t zeroPoint = 0) {
    graph::Operand operand;
    operand.type = type;
    operand.dimensions = std::move(dimensions);
    operand.scale = scale;
    operand.zeroPoint = zeroPoint;
    return operand;
  }

  // Validates signature and structure only.
  Status validate() { return makeModel(); }

  // Runs all steps; output() and outputDimensions() then give the results.
  Status run() {
    HEARTH_TRY(makeModel());
    context_ = makeContext(model_, model_.main(), model_.main().operations[0]);
    for (size_t i = 0; i < operation_.inputs.size(); ++i) {
      context_.inputs[i].data = values_[operation_.inputs[i]].data();
      if (areInputShapesKnown_) context_.inputs[i].hasKnownShape = true;
    }
    const OperationDefinition* definition = findOperation(operation_.type);
    HEARTH_TRY(definition->prepare(context_));
    for (size_t i = 0; i < operation_.outputs.size(); ++i) {
      Tensor& output = context_.outputs[i];
      if (!output.isPresent) continue;
      std::vector<uint8_t>& bytes = values_[operation_.outputs[i]];
      if (output.elementCount() > maximumOutput_)
        return fail(ErrorCode::kResourceExhaustedPersistent, "The output has {} elements.",
                    output.elementCount());
      // The exact size, so that a sanitizer detects a write of one byte too many.
      bytes.assign(output.elementCount() * graph::elementSize(output.type()), 0xAA);
      bytes.shrink_to_fit();
      output.data = bytes.data();
    }
    const Status status = definition->execute(context_);
    HEARTH_TRY(compareWithReference(context_, status));
    return status;
  }

  template <typename T>
  std::vector<T> result(size_t index = 0) const {
    const std::vector<uint8_t>& bytes = values_[operation_.outputs[index]];
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  const Dimensions& dimensions(size_t index = 0) const {
    return context_.outputs[index].dimensions;
  }

 private:
  template <typename T>
  OperationBuilder& scalar(OperandType type, T value) {
    graph::Operand operand = tensor(type, {});
    operand.lifetime = graph::Lifetime::kConstantCopy;
    return add(std::move(operand), &value, sizeof(value));
  }

  OperationBuilder& add(graph::Operand operand, const void* data, size_t size) {
    operation_.inputs.push_back(static_cast<uint32_t>(subgraph_.operands.size()));
    subgraph_.operands.push_back(std::move(operand));
    std::vector<uint8_t> bytes(size);
    if (size > 0) std::memcpy(bytes.data(), data, size);
    values_.push_back(std::move(bytes));
    return *this;
  }

  Status makeModel() {
    model_ = {};
    graph::Subgraph subgraph = subgraph_;
    for (size_t i = 0; i < subgraph.operands.size(); ++i) {
      graph::Operand& operand = subgraph.operands[i];
      const uint32_t index = static_cast<uint32_t>(i);
      if (operand.lifetime == graph::Lifetime::kSubgraphInput) subgraph.inputs.push_back(index);
      if (operand.lifetime == graph::Lifetime::kSubgraphOutput) subgraph.outputs.push_back(index);
      if (operand.lifetime != graph::Lifetime::kConstantCopy) continue;
      operand.location.offset = model_.constantBytes.size();
      operand.location.length = values_[i].size();
      model_.constantBytes.insert(model_.constantBytes.end(), values_[i].begin(), values_[i].end());
    }
    subgraph.operations = {operation_};
    model_.subgraphs.push_back(std::move(subgraph));
    HEARTH_TRY(graph::validate(model_));
    return validateOperations(model_);
  }

  graph::Operation operation_;
  graph::Subgraph subgraph_;
  std::vector<std::vector<uint8_t>> values_;  // by operand
  graph::Model model_;
  OperationContext context_;
  bool areInputShapesKnown_ = false;
  uint64_t maximumOutput_ = UINT64_MAX;
};

}  // namespace hearth::ops
