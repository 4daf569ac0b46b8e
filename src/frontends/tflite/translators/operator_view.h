// SPDX-License-Identifier: Apache-2.0
// One operation of the file as translators see it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "frontends/tflite/translators/subgraph_builder.h"

namespace hearth::tflite {

// NNAPI's codes for scalar arguments.
inline constexpr int32_t kFuseNone = 0;
inline constexpr int32_t kFuseRelu = 1;
inline constexpr int32_t kFuseRelu1 = 2;
inline constexpr int32_t kFuseRelu6 = 3;
inline constexpr int32_t kPaddingSame = 1;
inline constexpr int32_t kPaddingValid = 2;

// How an activation is done: fused as an argument, or as an operation of its own behind `target`.
struct Activation {
  int32_t fuse = kFuseNone;
  uint32_t target = 0;  // what the operation itself writes
  uint32_t output = 0;
  std::optional<graph::OperationType> following;
};

// Used by one thread while its subgraph is built.
class OperatorView {
 public:
  OperatorView(SubgraphBuilder& builder, const schema::Operator& source)
      : builder_(builder), source_(source) {}

  // Whether all tensors exist; before anything else.
  Status check() const;

  SubgraphBuilder& builder() { return builder_; }
  const schema::Operator& source() const { return source_; }
  const graph::Operand& operand(uint32_t index) const { return builder_.operand(index); }

  size_t inputCount() const { return source_.inputs() == nullptr ? 0 : source_.inputs()->size(); }
  size_t outputCount() const {
    return source_.outputs() == nullptr ? 0 : source_.outputs()->size();
  }
  bool hasInput(size_t index) const { return inputTensor(index) >= 0; }
  // -1 when it is omitted.
  int64_t inputTensor(size_t index) const;
  int64_t outputTensor(size_t index) const {
    return source_.outputs()->Get(static_cast<uint32_t>(index));
  }

  // kBadData when it is omitted.
  Result<uint32_t> input(size_t index);
  // An operand without value when it is omitted.
  Result<uint32_t> inputOr(size_t index, graph::OperandType omitted);
  // SubgraphBuilder::blockScalesOf() the tensor at this input.
  Result<uint32_t> blockScales(size_t index) { return builder_.blockScalesOf(inputTensor(index)); }
  Result<uint32_t> output(size_t index);
  // Where the new value of the variable at this input goes.
  Result<uint32_t> nextValue(size_t input);

  // An integer argument (axes, shapes) as TENSOR_INT32 of at least one dimension.
  Result<uint32_t> intTensorInput(size_t index);
  Result<std::vector<int64_t>> constantInts(size_t input);
  // The only element of a constant.
  Result<int32_t> constantInt(size_t input);

  // Options of the expected type; the format's defaults when there are none.
  template <typename T>
  const T& options() const {
    const T* found = source_.builtin_options_as<T>();
    return found != nullptr ? *found : *flatbuffers::GetRoot<T>(kEmptyTable);
  }

  std::string name();

  Result<uint32_t> scalar(int32_t value) { return builder_.scalar(value); }
  Result<uint32_t> scalar(float value) { return builder_.scalar(value); }
  Result<uint32_t> scalar(bool value) { return builder_.scalar(value); }

  Status emit(graph::OperationType type, std::vector<uint32_t> inputs,
              std::vector<uint32_t> outputs);
  // An operation that writes output 0.
  Status emit(graph::OperationType type, std::vector<uint32_t> inputs);

  // Activation between the operation and output 0; `canFuse`: NNAPI's operation takes it as an
  // argument. The translator emits the operation with `fuse` and `target`, then finishes.
  Result<Activation> planActivation(schema::ActivationFunctionType type, bool canFuse = true);
  Status finishActivation(const Activation& activation);

  Result<uint32_t> padding(schema::Padding padding);

 private:
  // Root offset, vtable without fields, table.
  alignas(8) static constexpr uint8_t kEmptyTable[] = {8, 0, 0, 0, 4, 0, 4, 0, 4, 0, 0, 0};

  SubgraphBuilder& builder_;
  const schema::Operator& source_;
};

}  // namespace hearth::tflite
