// SPDX-License-Identifier: Apache-2.0
// Turns a model into a plan, operation by operation.
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
#include "cache/identity/content_memory.h"
#include "drivers/cpu/kernels/reference_kernel.h"
#include "drivers/cpu/plan/converted_constant.h"
#include "drivers/cpu/plan/plan.h"
#include "drivers/cpu/platform/kernel_traits.h"
#include "drivers/cpu/weights/packed_weights.h"
#include "graph/model.h"
#include "ops/operation.h"

namespace hearth::cpu {

// Collects values and nodes. Used by one thread. The model must outlive the plan.
class PlanBuilder {
 public:
  PlanBuilder(const graph::Model& model, PackedWeights* weights, std::set<uint32_t> referenceOnly);

  // The whole main subgraph. kUnsupported when it cannot be planned because shapes or branches are
  // known only at run time.
  Status build();

  Plan takePlan() { return std::move(plan_); }
  // Copies of constants that were not aligned for their type or end too close to unreadable memory;
  // the plan's values point into them.
  std::vector<std::unique_ptr<uint8_t[]>> takeOwnedConstants() { return std::move(owned_); }
  bool asksForTraits() const { return asksForTraits_; }
  // Which kernel runs each operation; "none" for operations that only rename memory.
  std::vector<std::string> takeKernels() { return std::move(kernels_); }

  // ---- for lowerings ----

  const graph::Model& model() const { return model_; }
  // Which int8 convolutions this CPU gets wrong: the self-test's result.
  Result<KernelTraits> traits();
  PackedWeights* weights() const { return weights_; }
  uint32_t currentOperation() const { return operation_; }
  const graph::Operand& operand(uint32_t index) const { return subgraph_.operands[index]; }

  // Inferred shape of an operand that the current operation touches or an earlier one wrote.
  const ops::Tensor& tensor(uint32_t index) const { return tensors_[index]; }

  // Value with the operand's content, for reading.
  ValueId read(uint32_t operand);
  // Constant bytes that a node packs at `place`: where they lie, or a copy when packing would read
  // past the end of what can be read. Not to be read when the place is packed already.
  const uint8_t* weightData(uint32_t operand, WeightPlace place);
  // The same for kernels that pack at each start: after a warm start these bytes come from the
  // segment store and not from the model.
  Result<const uint8_t*> rawData(uint32_t operand);

  // weightData, or rawData of a converted constant: for biases, which are small.
  Result<const uint8_t*> biasData(uint32_t operand, WeightPlace place) {
    if (converted_[operand] != nullptr) return rawData(operand);
    return weightData(operand, place);
  }

  // Names what the current operation packs, for PlaceScope: the constants by where they lie, the
  // quantisation of `operands`, and `parameters`. Null when a constant lies where others cannot
  // find them again, or when nothing is to be packed.
  std::shared_ptr<const base::Sha256Digest> packingSource(std::span<const uint32_t> operands,
                                                          std::span<const uint64_t> parameters);

  // Lets the pages of a constant go once the node has packed it, where it lies in a file mapping
  // that we made.
  void releaseAfterPacking(Node* node, uint32_t operand) const;

  // Value to write the operand's content to.
  ValueId write(uint32_t operand);
  // Memory between two nodes of one operation.
  ValueId temporary(uint64_t bytes);
  // Makes `output` share `input`'s memory. False when both are fixed (client memory, constants).
  bool alias(uint32_t output, uint32_t input);

  // Kernels may overwrite this many bytes behind the value.
  void reserveWriteSlack(ValueId value, uint64_t bytes);

  // Adds a node; fills operation, name and kernel.
  Node& add(const char* kernel, std::vector<ValueId> inputs, std::vector<ValueId> outputs);
  // Adds a node that runs the kernel of src/ops. `context` is that of the current operation, or one
  // whose inputs with data are other constants.
  Node& addOperation(const char* kernel, const ops::OperationContext& context);
  // The node alone, for a kernel made otherwise of the same context.
  struct Arguments {
    Node& node;
    ReferenceArguments arguments;
  };
  Arguments addArguments(const char* kernel, const ops::OperationContext& context);
  // Where a constant lies.
  const uint8_t* constantOf(ValueId value) const { return plan_.values[value].constant; }

  // Spatial zero padding that the consumers of an operand apply themselves.
  struct PaddedView {
    uint32_t source = 0;  // operand
    uint32_t top = 0, bottom = 0, left = 0, right = 0;
    uint8_t fillByte = 0;  // of the padding, where it has to be written after all
  };
  // Records that `operand` is `view`, without a node for it.
  void setPaddedView(uint32_t operand, PaddedView view);
  std::optional<PaddedView> paddedView(uint32_t operand) const;

  // Values that hold the 8-bit rows of a float32 operand and their parameters, once a layer with
  // rows of that size made them.
  void setQuantizedRows(uint32_t operand, size_t rowSize, std::pair<ValueId, ValueId> values) {
    quantizedRows_[{operand, rowSize}] = values;
  }
  std::optional<std::pair<ValueId, ValueId>> quantizedRows(uint32_t operand, size_t rowSize) const {
    const auto it = quantizedRows_.find({operand, rowSize});
    return it == quantizedRows_.end() ? std::nullopt : std::optional(it->second);
  }

  // Records that the current operation's output is a converted constant, without a node for it.
  void setConverted(uint32_t operand) {
    converted_[operand] = std::make_shared<ConvertedConstant>(context_);
  }
  // Null for other operands.
  const ConvertedConstantRef& converted(uint32_t operand) const { return converted_[operand]; }
  // Whether the operand is a constant, converted or not.
  bool isWeight(uint32_t operand) const {
    return subgraph_.operands[operand].isConstant() || converted_[operand] != nullptr;
  }

  // Operations that read the operand, in order.
  const std::vector<uint32_t>& consumers(uint32_t operand) const { return consumers_[operand]; }
  bool isGraphOutput(uint32_t operand) const {
    return subgraph_.operands[operand].lifetime == graph::Lifetime::kSubgraphOutput;
  }
  const graph::Operation& operation(uint32_t index) const { return subgraph_.operations[index]; }
  bool isReferenceOnly(uint32_t operation) const { return referenceOnly_.contains(operation); }
  // Whether a later operation's result, of the shape of the current one's, can be written by nodes
  // of the current operation: they are then to be added, and takeOver() called.
  bool canTakeOver(uint32_t operation);
  void takeOver(uint32_t operation) { takenOver_.insert(operation); }

  // Context of the current operation with inferred shapes.
  const ops::OperationContext& context() const { return context_; }

 private:
  Status infer(const graph::Operation& operation);
  Status lower();
  void materialize(uint32_t operand);
  std::optional<base::Sha256Digest> operandSource(uint32_t operand);
  ValueId newValue(Value value);
  // Whether kReadSlack bytes behind a constant can be read where it lies.
  bool hasReadableTail(const graph::Operand& operand) const;
  const uint8_t* copyOf(const graph::Operand& operand, const uint8_t* data);

  const graph::Model& model_;
  const graph::Subgraph& subgraph_;
  bool asksForTraits_ = false;
  PackedWeights* weights_;
  std::set<uint32_t> referenceOnly_;
  std::set<uint32_t> takenOver_;  // operations that are not lowered, for nodes of others do them

  Plan plan_;
  std::vector<std::unique_ptr<uint8_t[]>> owned_;
  std::vector<std::string> kernels_;
  std::vector<std::optional<cache::ContentSource>> poolSources_;  // by pool, where asked for
  std::vector<ops::Tensor> tensors_;                              // by operand: inferred shapes
  std::vector<std::optional<ValueId>> valueOf_;                   // by operand
  std::vector<std::optional<PaddedView>> padded_;                 // by operand
  std::vector<ConvertedConstantRef> converted_;                   // by operand
  std::vector<std::vector<uint32_t>> consumers_;                  // by operand
  std::map<std::pair<uint32_t, size_t>, std::pair<ValueId, ValueId>> quantizedRows_;
  std::map<uint32_t, std::optional<base::Sha256Digest>> operandSources_;
  uint32_t operation_ = 0;
  ops::OperationContext context_;
};

// One lowering: adds nodes for builder->context(), or returns false when the reference kernel has
// to do it. Defined beside their families, found by lowering.cc.
using Lowering = Result<bool> (*)(PlanBuilder* builder);
Lowering findLowering(graph::OperationType type);

// Memory of a tensor of a type and shape, in bytes.
uint64_t tensorBytes(const ops::Tensor& tensor);

}  // namespace hearth::cpu
