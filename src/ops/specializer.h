// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "graph/model.h"
#include "ops/aligned_constants.h"
#include "ops/followed_shapes.h"
#include "ops/operation.h"
#include "ops/specialized_model.h"

namespace hearth::ops {

// So many subgraphs are looked at for one model: operations that refer to others may double their
// number at each level.
inline constexpr uint32_t kMostNested = 256;

// Specialises one subgraph of a model.
class Specializer {
 public:
  // `made` begins as a copy of `model`; `isOnlyUse` says whether nothing else refers to the
  // subgraph. `allowance` is how many subgraphs may still be looked at. `before` is the same model
  // for the shapes that constants of shapes in it hold, which follow the inputs; null where there
  // are none.
  Specializer(const graph::Model& model, const graph::Model* before, uint32_t subgraph,
              unsigned depth, bool isOnlyUse, uint32_t* allowance, graph::Model* made)
      : original_(model),
        before_(before),
        subgraph_(model.subgraphs[subgraph]),
        index_(subgraph),
        depth_(depth),
        isOnlyUse_(isOnlyUse),
        allowance_(allowance),
        model_(made),
        states_(subgraph_.operands.size()) {}

  Status run(std::span<const graph::Dimensions> inputs);

  // To be called before run(): inputs from `first` on are states of the operations.
  void setFreeInputs(size_t first);
  // To be called before run(): shapes that depend on values stay unknown and are no errors.
  void allowOpenShapes() { allowsOpenShapes_ = true; }
  // To be called before run(): a dimension of 0 of an input is 0.
  void allowEmptyInputs() { allowsEmptyInputs_ = true; }
  // To be called before run(), with allowOpenShapes(): the file's ranks hold for all inputs.
  void keepRanks() { keepsRanks_ = true; }
  // To be called before run(), with what is known of the inputs of a nested subgraph.
  void setFollowedInputs(std::vector<FollowedTensor> inputs) { outerInputs_ = std::move(inputs); }

  std::vector<FollowedTensor> followedOutputs() const;

  // The dimensions of the subgraph's outputs.
  std::vector<Dimensions> outputDimensions() const;

  // What is known of the subgraph's outputs.
  std::vector<InferredOutput> outputs() const;
  Status checkOutputs() const;

  // Writes the result to the model.
  void finish();

  // Where operations whose output shapes depend on values are among those that are left.
  std::vector<uint32_t> takeOpenOperations() { return std::move(openOperations_); }

  // The operations that are left, those of nested subgraphs behind the subgraph's own.
  std::vector<uint32_t> takeOperations();

 private:
  // What is known of an operand.
  struct State {
    Dimensions dimensions;
    bool isKnown = false;  // `dimensions` are complete
    // Whether it follows from shapes; then it has a value.
    bool isDerived = false;
    bool isFree = false;          // an input that takes the shape which the operations need
    std::vector<uint64_t> value;  // memory of the elements, aligned for all types
  };
  Status setInput(size_t position, const graph::Dimensions& given);
  Status step(uint32_t index);

  // A tensor without elements has a value, which memory of any size holds.
  static void setEmpty(State* state);
  void leaveOpen(uint32_t index);
  bool hasOpenInput(const graph::Operation& operation) const;
  Status prepare(const OperationDefinition& definition);

  // --- Following the inputs ---

  void beginToFollow();
  std::vector<FollowedTensor> followed(const std::vector<uint32_t>& operands) const;

  // prepare() for inputs of other shapes than the file has.
  Status prepareFollowing(uint32_t index, const OperationDefinition& definition);

  // States, which are inputs of the model that its clients do not see, have a row for each part.
  Status followStates(const graph::Operation& operation);

  // IF and WHILE: their subgraphs tell the shapes.
  Status stepInto(uint32_t index, const graph::Operation& operation);
  bool isReferredToOnce(uint32_t target) const;
  void alignInputs();
  static uint64_t bytesOf(const Tensor& tensor);

  // Constants of other types are weights, which the driver folds in a way of its own.
  bool isWorthComputing(bool isDerived) const;

  // Computes the outputs of the current operation. False where that fails; running the model then
  // tells why.
  bool compute(const OperationDefinition& definition);
  void setConstant(graph::Operand* operand, const std::vector<uint64_t>& value);

  const graph::Model& original_;
  const graph::Model* const before_;
  const graph::Subgraph& subgraph_;
  const uint32_t index_;
  const unsigned depth_;
  const bool isOnlyUse_;
  uint32_t* const allowance_;
  graph::Model* const model_;
  std::vector<State> states_;  // by operand
  std::vector<uint32_t> operations_;
  std::vector<uint32_t> nestedOperations_;
  std::vector<uint32_t> openOperations_;
  OperationContext context_;
  AlignedConstants aligned_;  // of the current operation
  std::vector<FollowedTensor> outerInputs_;
  std::vector<FollowedTensor> followed_;  // by operand; empty without `before_`
  std::deque<std::pair<uint32_t, FollowedConstant>> replaced_;  // by operation
  bool allowsOpenShapes_ = false;
  bool allowsEmptyInputs_ = false;
  bool keepsRanks_ = false;
  std::deque<graph::Operand> unranked_;  // in place of operands of rank 0
};

}  // namespace hearth::ops
