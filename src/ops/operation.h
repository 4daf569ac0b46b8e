// SPDX-License-Identifier: Apache-2.0
// What every operation provides: signature validation, shape inference and a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "graph/model.h"

namespace hearth::threads {
class ThreadPool;
}

namespace hearth::ops {

struct PreparedCustom;

using graph::Dimensions;
using graph::OperandType;
using graph::OperationType;

// An operand as shape inference and kernels see it: the model's type and quantisation with the
// dimensions of this run.
struct Tensor {
  const graph::Operand* operand = nullptr;  // never null; type, scale, zeroPoint, perChannel
  Dimensions dimensions;                    // of this run; those in `operand` may be unknown
  void* data = nullptr;                     // null: omitted, or not known yet (shape inference)
  bool isPresent = false;                   // false: an omitted optional argument
  bool hasKnownShape = false;               // dimensions are complete

  OperandType type() const { return operand->type; }
  size_t rank() const { return dimensions.size(); }
  uint64_t elementCount() const {
    uint64_t count = 1;
    for (uint32_t dimension : dimensions) count *= dimension;
    return count;
  }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

// One operation with its arguments. Trailing optional arguments may be absent altogether.
// Used by one thread at a time.
class OperationContext {
 public:
  const graph::Model* model = nullptr;
  const graph::Operation* operation = nullptr;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  threads::ThreadPool* threadPool = nullptr;  // null: run in the calling thread
  // Of a CUSTOM operation: set by prepare() for execute() and for later calls of prepare().
  std::shared_ptr<const PreparedCustom> custom;

  bool hasInput(size_t index) const { return index < inputs.size() && inputs[index].isPresent; }
  bool hasOutput(size_t index) const { return index < outputs.size() && outputs[index].isPresent; }

  // Value of a scalar input (FLOAT32, INT32, BOOL, …); `fallback` when it is omitted. kUnsupported
  // when it is given but only known at run time.
  template <typename T>
  Result<T> scalar(size_t index, T fallback) const;
  template <typename T>
  Result<T> scalar(size_t index) const;  // required: kBadData when omitted

  // Values of an INT32 tensor input, widened. Errors as scalar().
  Result<std::vector<int64_t>> intVector(size_t index) const;

  // Shape inference's result. kBadData when the model gives the output other known dimensions.
  Status setOutputDimensions(size_t index, Dimensions dimensions);

  // "CONV_2D \"name\"" for messages.
  std::string describe() const;
};

// The error of shape inference when an output shape depends on values that are known only at run
// time. prepare() returns it through needsRuntimeValue(); isNeedsRuntimeValue() recognises it.
std::unexpected<Error> needsRuntimeValue(const OperationContext& context, size_t input);
bool isNeedsRuntimeValue(const Error& error);

class Signature;

// One operation. Plain functions without state; all three are safe on any model that passed
// graph::validate(): they check every shape, axis and parameter before they use it.
struct OperationDefinition {
  OperationType type;
  // Checks counts and types of arguments, that parameters are constant where NNAPI requires it, and
  // ranks and dimensions as far as they are known. kBadData names the argument, what it is and what
  // is allowed.
  Status (*check)(const Signature&);
  // Checks shapes and parameter values, and calls setOutputDimensions() for every present output.
  // Input data may be null, except those of constants. Must be called before execute().
  Status (*prepare)(OperationContext&);
  // Computes; every present input and output has data and the dimensions that prepare() gave.
  Status (*execute)(OperationContext&);

  // check() of one operation of a model.
  Status validate(const graph::Model& model, const graph::Subgraph& subgraph,
                  const graph::Operation& operation) const;
};

// All operations that exist, sorted by type.
std::span<const OperationDefinition* const> allOperations();
const OperationDefinition* findOperation(OperationType type);

// validate() of each operation of each subgraph. kUnsupported for an operation without definition.
Status validateOperations(const graph::Model& model);
// The same, but without operations of drivers, which only their drivers can judge.
Status validateOperationsExceptDrivers(const graph::Model& model);
// The same, but only once for a graph::ValidatedModel.
Status validateOperationsOnce(const graph::Model& model);

// Fills a context for one operation: operands, present flags, the model's dimensions, constant
// data.
OperationContext makeContext(const graph::Model& model, const graph::Subgraph& subgraph,
                             const graph::Operation& operation);
// The same, reusing the memory of a context that is no longer needed.
void makeContext(const graph::Model& model, const graph::Subgraph& subgraph,
                 const graph::Operation& operation, OperationContext* context);

}  // namespace hearth::ops
