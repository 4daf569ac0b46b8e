// SPDX-License-Identifier: Apache-2.0
// Operators that the program provides for CUSTOM operations of .tflite files, and the table in
// which it registers them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

// The inputs of a CUSTOM operation. The first three are constants; the options are a constant or
// omitted.
enum CustomInput : size_t {
  kCustomName = 0,           // TENSOR_QUANT8_ASYMM of rank 1: the operator's name
  kCustomVersion = 1,        // INT32: the version under which the operator was registered
  kCustomCodeVersion = 2,    // INT32: the version that the file gives to the operation
  kCustomOptions = 3,        // TENSOR_QUANT8_ASYMM of rank 1: the bytes of the file's options
  kCustomFirstArgument = 4,  // from here on the operator's own tensors, which may be omitted
};

// One operation of a model as its operator sees it.
struct CustomCall {
  std::span<const uint8_t> options;
  int32_t codeVersion = 0;  // what the file gives to the operation
  // The operator's own tensors. Inputs whose values are not known have no data.
  std::span<const Tensor> inputs;
  std::span<const Tensor> outputs;
};

// What an operator says about its outputs before it computes them.
struct CustomOutputs {
  // The dimensions depend on values of inputs that had no data; `outputs` is empty.
  bool needsValues = false;
  // One for each output: type, dimensions, scale and zero point count.
  std::vector<graph::Operand> outputs;
};

// An operator with the state that it made for one operation. Thread-safe. Its functions call code
// of the program, so no lock may be held around them, the destructor included.
class CustomNode {
 public:
  virtual ~CustomNode() = default;
  // Depends on `call` alone; returns as many outputs as `call` has, unless it needs values.
  virtual Result<CustomOutputs> describeOutputs(const CustomCall& call) const = 0;
  // All inputs and outputs that are present have data.
  virtual Status compute(const CustomCall& call) const = 0;
};

// A registered operator. Thread-safe; never destroyed.
class CustomOperator {
 public:
  virtual ~CustomOperator() = default;
  virtual std::string_view name() const = 0;
  virtual int32_t version() const = 0;
  // Whether its tensors may be of strings. Operators that a program registers with hearth.h get
  // none: handles mean nothing outside the library.
  virtual bool takesStrings() const { return false; }
  // Whether only a device computes it (ops/device_operator.h).
  virtual bool isOfDevice() const { return false; }
  // `call` has no tensors. Calls code of the program.
  virtual Result<std::shared_ptr<const CustomNode>> makeNode(const CustomCall& call) const = 0;
};

// Registers an operator for the life of the process. kBadData when its name is empty, longer than
// 1024 bytes or taken. Thread-safe.
Status registerCustomOperator(std::unique_ptr<const CustomOperator> custom);
// What the program registered under this name, else what the library has, else a device's; null for
// none of them. Thread-safe.
const CustomOperator* findCustomOperator(std::string_view name);
// kBadData for a name that no operator can have.
Status checkOperatorName(std::string_view name);
// The error for a name that findCustomOperator() does not know; it tells the user what to do.
std::unexpected<Error> unknownCustomOperator(std::string_view name);

// What prepare() of a CUSTOM operation found out. Immutable; copies of the context share it.
struct PreparedCustom {
  std::shared_ptr<const CustomNode> node;
  std::vector<Dimensions> inputs;   // the input shapes for which the outputs below hold
  std::vector<Dimensions> outputs;  // empty: they depend on values of a run
};

// The name of a CUSTOM operation's operator; that of the type for any other operation. The model
// has passed graph::validate().
std::string operatorName(const graph::Model& model, const graph::Subgraph& subgraph,
                         const graph::Operation& operation);

// Whether the main subgraph has a CUSTOM operation.
bool hasCustomOperations(const graph::Model& model);

}  // namespace hearth::ops
