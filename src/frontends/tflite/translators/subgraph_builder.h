// SPDX-License-Identifier: Apache-2.0
// Assembles one subgraph: operands for tensors at their first use, variables, operations.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "frontends/tflite/translators/model_builder.h"
#include "frontends/tflite/translators/operand_builder.h"
#include "frontends/tflite/translators/run_once.h"
#include "frontends/tflite/translators/table_operands.h"
#include "graph/model.h"

namespace hearth::tflite {

// Used by one thread.
class SubgraphBuilder : public OperandBuilder {
 public:
  // `isMain`: variable tensors are allowed and become inputs and outputs of the graph.
  SubgraphBuilder(ModelBuilder& model, const schema::SubGraph& source, size_t sourceIndex,
                  bool isMain);

  Result<graph::Subgraph> build();

  ScaleLists& scaleLists() const { return model_.file().scaleLists(); }
  // The subgraph of the file that holds the operation being translated.
  const schema::SubGraph& source() const { return *scope_->source; }
  // Whether the tensor is an output of that subgraph.
  bool isOutput(int64_t tensor);
  size_t sourceIndex() const { return scope_->sourceIndex; }

  // kBadData when there is no tensor with this index.
  Result<const schema::Tensor*> tensor(int64_t index) const;
  // The operand of a tensor; for a variable, its value after the operations so far.
  Result<uint32_t> operandOf(int64_t tensor);
  // The operand for the new value of a variable; a spare one for other tensors.
  Result<uint32_t> nextValueOf(int64_t tensor);
  bool isVariable(int64_t tensor) const;
  // Gives a variable its value before the first run. kBadData when an operation came before that
  // uses it, or for a wrong number of bytes.
  Status initializeVariable(int64_t tensor, std::vector<uint8_t> value);
  // A value that the file does not show and that lives on between runs, zeros before the first one:
  // its operand before the operation, and the one that the operation writes. kUnsupported in
  // subgraphs that an operation calls.
  struct HiddenState {
    uint32_t before;
    uint32_t after;
  };
  Result<HiddenState> addHiddenState(graph::Operand like);
  // The scales of a TENSOR_INT4 tensor that is quantised by blocks, [rows, blocks]; an omitted
  // operand for any other tensor. kBadData when shape or block size do not fit.
  Result<uint32_t> blockScalesOf(int64_t tensor);

  // What is computed from a tensor of unknown rank is of unknown rank, too, if the file does not
  // say its own. In files that leave ranks out, the operation says the shapes of such outputs, and
  // shapes that are computed from constants become constants.
  Status emit(graph::OperationType type, std::vector<uint32_t> inputs,
              std::vector<uint32_t> outputs, std::string name);
  // Registers a resource variable under the name that VAR_HANDLE gives it.
  Status addHandle(int64_t tensor, std::string resource);
  // Takes the values that another subgraph (CALL_ONCE) assigns to resources as their initial
  // values, and fills the hash tables that it fills. Errors: those of readRunOnce().
  Status initializeResources(int64_t subgraph);
  // The value of a resource; `like` is the tensor that it is read into.
  Result<uint32_t> readResource(int64_t handle, int64_t like);
  Status assignResource(int64_t handle, uint32_t value);
  // Makes a tensor the handle of the hash table `id`.
  Status addTableHandle(int64_t tensor, int32_t id);
  // Fills the table of a handle from two constants. Errors: those of TableOperandMap::fill().
  Status fillTable(int64_t handle, int64_t keys, int64_t values);
  // kBadData for a tensor that is no such handle, else TableOperandMap::find().
  Result<TableOperands> tableOf(int64_t handle) const;
  // From here on operand `value` is the value of `tensor`. kBadData when it already has another
  // value.
  Status bindTensor(int64_t tensor, uint32_t value);
  // Inserts the operations of another subgraph of the file in place of a call. The given operands
  // are its inputs, and its outputs become the given tensors. kBadData for wrong counts, for calls
  // that are too deep, and for results that are written twice.
  Status inlineSubgraph(int64_t subgraph, const std::vector<uint32_t>& inputs,
                        const std::vector<int64_t>& outputTensors);
  // Copies a value to an operand of the same type and shape.
  Status emitCopy(uint32_t from, uint32_t to, std::string name);

 private:
  // The subgraph whose tensors are meant: this one, or one that is being inlined.
  struct Scope {
    const schema::SubGraph* source;
    size_t sourceIndex;
    std::vector<int64_t> operandOfTensor;  // -1: none yet; for a variable, its newest value
    size_t depth = 0;
    std::map<int64_t, std::string> resourceOfTensor = {};
    std::map<int64_t, int32_t> tableOfTensor = {};
    std::set<int64_t> outputs = {};  // filled by isOutput()
  };
  // A value that lives on between runs: a variable tensor, or a resource, which has no tensor.
  struct Variable {
    int64_t tensor;  // -1: a resource or a hidden state
    uint32_t input;
    uint32_t current;                   // without a tensor: its value after the operations so far
    std::vector<uint8_t> initialValue;  // empty: zeros
  };

  // Makes a STRING_CONSTANT of `operand`, which has type and shape.
  Result<uint32_t> addStringConstant(const BufferRange& range, graph::Operand operand);
  Result<std::string> resourceOf(int64_t handle) const;
  Result<int32_t> tableIdOf(int64_t handle) const;
  Result<Variable*> useResource(const std::string& name, graph::Operand like);
  Status bindInputs(Scope* scope, const std::vector<uint32_t>& inputs);
  Result<uint32_t> createOperand(int64_t index, const schema::Tensor& tensor);
  Status append(graph::Operation operation);
  Result<bool> becomesConstant(const graph::Operation& operation);
  Status addInputs();
  Status translateOperators();
  Status translateOperator(uint32_t index);
  Status addOutputs();
  Status addVariables();

  const bool isMain_;
  Scope outermost_;
  Scope* scope_ = &outermost_;
  std::vector<Variable> variables_;
  std::map<std::string, size_t> resources_;  // index of variables_
  ResourceValues initialValues_;
  TableOperandMap tables_;
};

}  // namespace hearth::tflite
