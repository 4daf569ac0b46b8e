// SPDX-License-Identifier: Apache-2.0
// Turns a model into an execution graph, operation by operation.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "drivers/cpu/kernels/shared_kernel.h"
#include "drivers/cpu/plan/plan.h"
#include "drivers/cpu/plan/plan_constants.h"
#include "drivers/cpu/plan/widened_subgraph.h"
#include "drivers/cpu/platform/kernel_traits.h"
#include "drivers/cpu/weights/packed_weights.h"
#include "graph/model.h"
#include "ops/operation.h"

namespace hearth::cpu {

// What the program's operators said when a model was first planned, by operation: later plans of
// the model call nothing of the program, so they may be made under locks.
using PreparedCustoms = std::map<uint32_t, std::shared_ptr<const ops::PreparedCustom>>;

class NestedGraph;

// Which subgraph a plan is of: the main one, whose shapes the model tells, or another, with the
// dimensions that its inputs have.
struct PlannedSubgraph {
  uint32_t index = 0;
  std::vector<graph::Dimensions> inputs;  // empty: those of the model
  unsigned depth = 0;                     // of the nesting; 0 is the main subgraph
  // How many subgraphs may still be planned, for all plans that are made together; null: as many as
  // a model may have.
  uint32_t* allowance = nullptr;
  uint64_t maxArenaBytes = 0;  // of each subgraph inside it; 0 = no limit
};

// Collects the values and nodes of an execution graph. Used by one thread. The model must outlive
// the plan.
class PlanBuilder {
 public:
  // `customs` are those of an earlier plan of the model.
  PlanBuilder(const graph::Model& model, PackedWeights* weights, std::set<uint32_t> referenceOnly,
              PreparedCustoms customs = {}, PlannedSubgraph planned = {});

  // Lowers the whole subgraph. Error: kUnsupported when shapes or branches are known only at
  // run time; that of a lowering.
  Status build();

  Plan takePlan() { return std::move(plan_); }
  bool asksForTraits() const { return asksForTraits_; }
  PreparedCustoms takeCustoms() { return std::move(customs_); }
  // How an operation is computed.
  struct OperationKernel {
    std::string kind;     // Node::kernel, or "none" without a node
    std::string whySlow;  // Node::whySlow
  };
  // By operation.
  std::vector<OperationKernel> takeKernels() { return std::move(kernels_); }

  // The constants of the graph, whose copies the plan's values point into.
  PlanConstants& constants() { return constants_; }
  const PlanConstants& constants() const { return constants_; }

  // ---- for lowerings ----

  const graph::Model& model() const { return model_; }
  // The self-test's result: which int8 convolutions go wrong on this CPU.
  Result<KernelTraits> traits();
  PackedWeights* weights() const { return weights_; }
  const graph::Subgraph& subgraph() const { return subgraph_; }
  // The number of the current operation in places of packed weights: no other operation of the
  // model has it.
  uint32_t currentOperation() const { return firstOperation_ + operation_; }
  const graph::Operand& operand(uint32_t index) const { return subgraph_.operands[index]; }

  // Inferred shape of an operand that the current operation touches or an earlier one wrote.
  const ops::Tensor& tensor(uint32_t index) const { return tensors_[index]; }

  // Value with the operand's content, for reading.
  ValueId read(uint32_t operand);
  // PlanConstants::packingSource() for the current operation.
  std::shared_ptr<const base::Sha256Digest> packingSource(std::span<const uint32_t> operands,
                                                          std::span<const uint64_t> parameters) {
    return constants_.packingSource(context_.operation->type, operands, parameters);
  }

  // Value to write the operand's content to.
  ValueId write(uint32_t operand);
  // A value for memory between two nodes of one operation.
  ValueId temporary(uint64_t bytes);
  // Makes `output` share `input`'s memory. False when both are fixed (client memory, constants).
  bool alias(uint32_t output, uint32_t input);

  // Lets kernels overwrite this many bytes behind the value.
  void reserveWriteSlack(ValueId value, uint64_t bytes);

  // For a lowering that leaves the current operation to the shared kernel: `why`, a few words that
  // follow a colon, are noted for people. Of several lowerings that try, the last one's count.
  // Returns false.
  bool decline(std::string why) {
    declined_ = std::move(why);
    return false;
  }

  // Adds a node; fills operation, name and kernel.
  Node& add(const char* kernel, std::vector<ValueId> inputs, std::vector<ValueId> outputs);
  // Adds a node that runs the kernel of src/ops. `context` is that of the current operation, or a
  // copy of it in which inputs with data are other constants.
  Node& addOperation(const char* kernel, const ops::OperationContext& context);
  // Adds the node without a kernel, for a caller that sets Node::create itself.
  struct Arguments {
    Node& node;
    OperationArguments arguments;
  };
  Arguments addArguments(const char* kernel, const ops::OperationContext& context);
  // The bytes of a constant value; null for other values.
  const uint8_t* constantOf(ValueId value) const { return plan_.values[value].constant; }

  // Spatial zero padding that the readers of an operand apply themselves.
  struct PaddedView {
    uint32_t source = 0;  // operand
    uint32_t top = 0, bottom = 0, left = 0, right = 0;
    uint8_t fillByte = 0;  // every byte of the padding, where a node has to write it after all
  };
  // Records that `operand` is `view`, without a node for it.
  void setPaddedView(uint32_t operand, PaddedView view);
  std::optional<PaddedView> paddedView(uint32_t operand) const;

  // Values with the 8-bit rows of a float32 operand and their quantisation parameters, set by the
  // first layer that reads the operand in rows of this many elements.
  void setQuantizedRows(uint32_t operand, size_t rowSize, std::pair<ValueId, ValueId> values) {
    quantizedRows_[{operand, rowSize}] = values;
  }
  std::optional<std::pair<ValueId, ValueId>> quantizedRows(uint32_t operand, size_t rowSize) const {
    const auto it = quantizedRows_.find({operand, rowSize});
    return it == quantizedRows_.end() ? std::nullopt : std::optional(it->second);
  }

  // Indices of the operations that read the operand, in order; those that read its wide form, too.
  const std::vector<uint32_t>& consumers(uint32_t operand) const { return consumers_[operand]; }
  // Whether it is the float32 form of a float16 tensor: what is written to it is rounded after the
  // operation, so later operations are computed by the way only if that changes nothing.
  bool isWide(uint32_t operand) const { return widened_ != nullptr && widened_->isWide(operand); }
  bool isGraphOutput(uint32_t operand) const {
    return subgraph_.operands[operand].lifetime == graph::Lifetime::kSubgraphOutput;
  }
  // Whether the operand has its content before the current operation.
  bool isWritten(uint32_t operand) const {
    return valueOf_[operand] || padded_[operand] || constants_.isWeight(operand);
  }
  // Whether two values lie in the memory of one root.
  bool shareMemory(ValueId a, ValueId b) const {
    return plan_.resolve(a).root == plan_.resolve(b).root;
  }
  const graph::Operation& operation(uint32_t index) const { return subgraph_.operations[index]; }
  bool isReferenceOnly(uint32_t operation) const { return referenceOnly_.contains(operation); }
  // Whether nodes of the current operation may write the result of a later operation, which has the
  // shape of the current one's result. If true, the caller adds these nodes and calls takeOver().
  bool canTakeOver(uint32_t operation);
  void takeOver(uint32_t operation) { takenOver_.insert(operation); }

  // The operation that writes the operand; none for inputs and constants.
  std::optional<uint32_t> producer(uint32_t operand) const {
    const uint32_t operation = producers_[operand];
    return operation == UINT32_MAX ? std::nullopt : std::optional(operation);
  }
  // Whether an earlier operation has a node of its own.
  bool hasNode(uint32_t operation) const;
  // Removes the nodes of earlier operations whose results no remaining node reads, since nodes of
  // the current one compute them by the way.
  void withdraw(const std::vector<uint32_t>& operations);
  bool isWithdrawn(uint32_t operation) const { return withdrawn_.contains(operation); }
  // Says that the current operation's nodes read an operand that the operation itself may not have.
  void keep(uint32_t operand) { kept_.insert(operand); }
  // Whether no node will read the operand, if these operations are withdrawn and the current one
  // does not read it.
  bool isUnread(uint32_t operand, const std::vector<uint32_t>& replaced) const;

  // The subgraphs of the current operation, if it is IF or WHILE, in the order of its inputs.
  const std::vector<std::shared_ptr<NestedGraph>>& nested() const { return nested_; }

  // Context of the current operation, with inferred shapes.
  const ops::OperationContext& context() const { return context_; }

 private:
  void setShape(uint32_t operand, const graph::Dimensions& dimensions);
  Status infer(const graph::Operation& operation);
  Status inferNested(const graph::Operation& operation);
  Status lower();
  void materialize(uint32_t operand);
  void widenConstants(const graph::Operation& operation);
  void convertInputs(const graph::Operation& operation);
  void roundOutputs(const graph::Operation& operation);
  void addConversion(uint32_t from, uint32_t to);
  ValueId newValue(Value value);

  const graph::Model& model_;
  const PlannedSubgraph planned_;
  const std::shared_ptr<const WidenedSubgraph> widened_;  // null: nothing is widened
  const graph::Subgraph& subgraph_;
  uint32_t firstOperation_ = 0;  // how many operations the subgraphs before this one have
  bool asksForTraits_ = false;
  PackedWeights* weights_;
  std::set<uint32_t> referenceOnly_;
  std::set<uint32_t> takenOver_;  // operations whose results nodes of earlier ones write
  std::set<uint32_t> withdrawn_;
  std::set<uint32_t> kept_;  // operands that nodes read for others, which may be withdrawn

  Plan plan_;
  PlanConstants constants_;
  std::vector<OperationKernel> kernels_;
  PreparedCustoms customs_;
  std::vector<ops::Tensor> tensors_;               // by operand: inferred shapes
  std::vector<std::optional<ValueId>> valueOf_;    // by operand
  std::vector<std::optional<PaddedView>> padded_;  // by operand
  std::vector<std::vector<uint32_t>> consumers_;   // by operand
  std::vector<uint32_t> producers_;                // by operand: UINT32_MAX: none
  std::map<std::pair<uint32_t, size_t>, std::pair<ValueId, ValueId>> quantizedRows_;
  uint32_t operation_ = 0;
  std::string declined_;
  ops::OperationContext context_;
  std::vector<std::shared_ptr<NestedGraph>> nested_;
  uint32_t allowance_;
};

// One lowering: adds nodes for builder->context(), or returns false when the shared kernel has
// to run the operation. findLowering() returns null for an operation without one.
using Lowering = Result<bool> (*)(PlanBuilder* builder);
Lowering findLowering(graph::OperationType type);

// Memory of a tensor of a type and shape, in bytes.
uint64_t tensorBytes(const ops::Tensor& tensor);

}  // namespace hearth::cpu
