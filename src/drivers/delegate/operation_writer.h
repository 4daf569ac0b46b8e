// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "drivers/delegate/graph_writer.h"
#include "ops/operation.h"
#include "tflite_abi/builtin_codes.h"

namespace hearth::drivers::delegate {

// Adds tensors to a graph. Those of operands are made when they are first asked for.
class TensorWriter {
 public:
  explicit TensorWriter(WrittenGraph* graph);

  // kUnsupported for a type that TensorFlow Lite lacks.
  Result<int32_t> ofOperand(uint32_t operand);
  // The tensor of an operand that was asked for; -1 if there is none.
  int32_t known(uint32_t operand) const { return tensors_[operand]; }
  // The same for one whose value becomes a constant, and the memory for that value.
  Result<uint8_t*> constantOf(uint32_t operand);
  // A constant list of integers, or with `isScalar` a single one without dimensions.
  int32_t integers(std::span<const int32_t> values, bool isScalar = false);
  int32_t matrix(std::span<const int32_t> values, int32_t columns);
  // A constant that is like the tensor, with other dimensions and values.
  int32_t constantLike(int32_t tensor, std::vector<int32_t> dims, std::span<const uint8_t> bytes);
  // A tensor that is like another one but for its dimensions.
  int32_t temporaryLike(int32_t tensor, std::vector<int32_t> dims);
  // A tensor without values, which only says how numbers are quantised; a scale of 0 says nothing.
  int32_t quantization(TfLiteType type, float scale, int32_t zeroPoint);
  // Lets the tensor stand for the operand, too.
  void alias(uint32_t operand, int32_t tensor) { tensors_[operand] = tensor; }

  WrittenTensor& at(int32_t tensor) { return graph_.tensors[static_cast<size_t>(tensor)]; }

 private:
  int32_t add(WrittenTensor tensor);
  const uint8_t* keep(std::span<const uint8_t> bytes);

  WrittenGraph& graph_;
  std::vector<int32_t> tensors_;  // by operand
};

// Writes one operation as nodes.
class OperationWriter {
 public:
  OperationWriter(const ops::OperationContext& context, size_t operation, TensorWriter* tensors,
                  tflite_abi::TensorflowMinor version, WrittenGraph* graph)
      : context_(context),
        operation_(operation),
        tensors_(*tensors),
        version_(version),
        graph_(*graph) {}

  const ops::OperationContext& context() const { return context_; }
  TensorWriter& tensors() { return tensors_; }
  const ops::Tensor& inputTensor(size_t index) const { return context_.inputs[index]; }
  const ops::Tensor& outputTensor(size_t index) const { return context_.outputs[index]; }
  size_t inputCount() const { return context_.inputs.size(); }
  size_t outputCount() const { return context_.outputs.size(); }

  // The tensor of an argument. kUnsupported for a type that TensorFlow Lite lacks; kBadData for an
  // input that is omitted.
  Result<int32_t> input(size_t index);
  Result<int32_t> inputOrNone(size_t index);  // -1 if it is omitted
  Result<int32_t> output(size_t index = 0);
  // A variable that holds an input before the operation, and an output afterwards. kUnsupported
  // unless the input is one of the model that nothing else reads, and both are alike.
  Result<int32_t> variable(size_t input, size_t output);
  // The last node that was emitted.
  WrittenNode& node() { return graph_.nodes.back(); }
  // The scalar or the elements of a constant; kUnsupported if they are not known.
  template <typename T>
  Result<T> scalar(size_t index, T fallback) const {
    return context_.scalar<T>(index, fallback);
  }
  // A bool or integer operand that says that images have channels first, which TensorFlow Lite
  // lacks: kUnsupported if it does.
  Status refuseChannelsFirst(size_t index) const;

  template <typename Params>
  Status emit(tflite_abi::Builtin code, std::vector<int32_t> inputs, std::vector<int32_t> outputs,
              const Params& params, std::optional<int32_t> version = {}) {
    std::vector<uint8_t> bytes(sizeof(params));
    std::memcpy(bytes.data(), &params, sizeof(params));
    return add(code, std::move(inputs), std::move(outputs), std::move(bytes), version);
  }
  Status emit(tflite_abi::Builtin code, std::vector<int32_t> inputs, std::vector<int32_t> outputs) {
    return add(code, std::move(inputs), std::move(outputs), {}, {});
  }

 private:
  Status add(tflite_abi::Builtin code, std::vector<int32_t> inputs, std::vector<int32_t> outputs,
             std::vector<uint8_t> parameters, std::optional<int32_t> version);

  const ops::OperationContext& context_;
  const size_t operation_;
  TensorWriter& tensors_;
  const tflite_abi::TensorflowMinor version_;
  WrittenGraph& graph_;
};

// Writes an operation; an error is the reason why TensorFlow Lite cannot express it.
using WriteOperation = Status (*)(OperationWriter& writer);
struct OperationEntry {
  ops::OperationType type;
  WriteOperation write;
};

// Sorted by nothing; each type once.
std::span<const OperationEntry> windowedOperations();     // convolutions, pools, resizing
std::span<const OperationEntry> elementwiseOperations();  // and reductions, products
std::span<const OperationEntry> movingOperations();       // those that move elements
std::span<const OperationEntry> recurrentOperations();    // with states
std::span<const OperationEntry> customOperations();       // that only a device knows

// Null for an operation that TensorFlow Lite lacks.
WriteOperation findOperationWriter(ops::OperationType type);

}  // namespace hearth::drivers::delegate
