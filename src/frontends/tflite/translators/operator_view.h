// SPDX-License-Identifier: Apache-2.0
// One operation of the file, as translators see it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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

// How an activation is applied: fused as an argument, or by an operation of its own after `target`.
struct Activation {
  int32_t fuse = kFuseNone;
  uint32_t target = 0;  // the operand that the operation itself writes
  uint32_t output = 0;
  std::optional<graph::OperationType> following;
};

// Used by one thread while its subgraph is built.
class OperatorView {
 public:
  OperatorView(SubgraphBuilder& builder, const schema::Operator& source)
      : builder_(builder), source_(source) {}

  // Checks that all tensors exist; to be called before anything else.
  Status check() const;

  SubgraphBuilder& builder() { return builder_; }
  const schema::Operator& source() const { return source_; }
  const graph::Operand& operand(uint32_t index) const { return builder_.operand(index); }

  size_t inputCount() const { return source_.inputs() == nullptr ? 0 : source_.inputs()->size(); }
  size_t outputCount() const {
    return source_.outputs() == nullptr ? 0 : source_.outputs()->size();
  }
  bool hasInput(size_t index) const { return inputTensor(index) >= 0; }
  // -1 when the input is omitted.
  int64_t inputTensor(size_t index) const;
  int64_t outputTensor(size_t index) const {
    return source_.outputs()->Get(static_cast<uint32_t>(index));
  }

  // kBadData when the input is omitted.
  Result<uint32_t> input(size_t index);
  // An operand without a value when the input is omitted.
  Result<uint32_t> inputOr(size_t index, graph::OperandType omitted);
  // SubgraphBuilder::blockScalesOf() the tensor at this input.
  Result<uint32_t> blockScales(size_t index) { return builder_.blockScalesOf(inputTensor(index)); }
  Result<uint32_t> output(size_t index);
  // Gives output 0 the type of an input, with the quantisation that the file has for the output, as
  // TensorFlow Lite's kernels do when they prepare. Outputs of the subgraph keep their type, which
  // programs see.
  Status takeOutputType(size_t input);
  // The operand for the new value of the variable at this input.
  Result<uint32_t> nextValue(size_t input);

  // An integer argument (axes, shapes) as TENSOR_INT32. A constant is copied with at least one
  // dimension; other tensors keep their shape, and INT64 ones are cast.
  Result<uint32_t> intTensorInput(size_t index);
  Result<std::vector<int64_t>> constantInts(size_t input);
  // An integer input of 32 bits or fewer with its shape; those of 16 bits are widened.
  Result<uint32_t> indices(size_t index);
  // The only element of a constant; kBadData when it has more, or does not fit.
  Result<int32_t> constantInt(size_t input);

  // The options of the expected type; the format's defaults when there are none.
  template <typename T>
  const T& options() const {
    const T* found = source_.builtin_options_as<T>();
    return found != nullptr ? *found : *flatbuffers::GetRoot<T>(kEmptyTable);
  }

  std::string name();

  Result<uint32_t> scalar(int32_t value) { return builder_.scalar(value); }
  Result<uint32_t> scalar(float value) { return builder_.scalar(value); }
  Result<uint32_t> scalar(bool value) { return builder_.scalar(value); }
  // A constant TENSOR_FLOAT32 of the given dimensions, which make one element; {} is rank zero.
  Result<uint32_t> floatTensor(float value, graph::Dimensions dimensions = {1});
  // A new TENSOR_FLOAT32 with the dimensions of an operand.
  Result<uint32_t> floatsLike(uint32_t operand);
  // Quantised values with the scale and zero point of `other`: themselves, or what a QUANTIZE makes
  // of them. For operations that only move elements: TFLite's copy the stored numbers even where
  // input and output differ in scale.
  Result<uint32_t> rescaledLike(uint32_t values, uint32_t other);
  // The real values of an operand that is TENSOR_FLOAT32 already or quantised.
  Result<uint32_t> dequantized(uint32_t values);
  // Whether an operand is quantised with 8 bits, or with 16.
  bool isQuantized8(uint32_t index) const;
  bool isQuantized16(uint32_t index) const;

  Status emit(graph::OperationType type, std::vector<uint32_t> inputs,
              std::vector<uint32_t> outputs);
  // Emits an operation that writes a new operand of these dimensions, without quantisation.
  Result<uint32_t> emitNew(graph::OperationType type, std::vector<uint32_t> inputs,
                           graph::Dimensions dimensions,
                           graph::OperandType result = graph::OperandType::kTensorFloat32);
  // Emits an operation that writes output 0.
  Status emit(graph::OperationType type, std::vector<uint32_t> inputs);

  // Plans the activation between the operation and output 0. `canFuse`: NNAPI's operation takes it
  // as an argument. The translator emits the operation with `fuse` and `target`, then calls
  // finishActivation().
  Result<Activation> planActivation(schema::ActivationFunctionType type, bool canFuse = true);
  Status finishActivation(const Activation& activation);

  Result<uint32_t> padding(schema::Padding padding);

 private:
  const schema::Tensor* firstOutput() const;
  // name() before it is made clean.
  std::string_view nameInFile() const;

  // Root offset, vtable without fields, table.
  alignas(8) static constexpr uint8_t kEmptyTable[] = {8, 0, 0, 0, 4, 0, 4, 0, 4, 0, 0, 0};

  SubgraphBuilder& builder_;
  const schema::Operator& source_;
};

}  // namespace hearth::tflite
