// SPDX-License-Identifier: Apache-2.0
// A model for known shapes of its inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "graph/model.h"

namespace hearth::ops {

// Whether the model has to be specialised for a run: it does not tell the shapes of all inputs.
bool hasUnknownInputs(const graph::Model& model);

struct SpecializedModel {
  // The model, in which operands have the dimensions that the inputs give them. What depends on
  // shapes alone (SHAPE and arithmetic on it) is computed: its results are constants, and its
  // operations are gone. This holds for the main subgraph and for those to which one IF or WHILE
  // refers; others stay as they are.
  std::shared_ptr<const graph::Model> model;
  // The operations that are left, as indices in the main subgraph of the original; behind them
  // those of the other subgraphs. Results with equal lists have the same operations.
  std::vector<uint32_t> operations;
};

// Specialises a model that passed graph::validate() and validateOperations() for the dimensions of
// its main subgraph's inputs: one entry for each, complete, with no dimension of 0; empty for a
// scalar. The result shares the pools of `model` and needs it
// no longer. Errors: kUnsupported where a shape depends on values that are known only at run time
// (isNeedsRuntimeValue()) or on which branch is taken, where an operation has no definition, and
// where an input has no elements; kBadData where shapes or values contradict each other.
Result<SpecializedModel> specialize(const graph::Model& model,
                                    std::span<const graph::Dimensions> inputs);

// A model for known shapes of its inputs, as far as they tell the shapes of the rest.
struct PartlySpecializedModel {
  // As SpecializedModel::model, but subgraphs to which IF or WHILE refers stay as they are.
  std::shared_ptr<const graph::Model> model;
  // The operations that are left, as indices in the main subgraph of the original.
  std::vector<uint32_t> operations;
  // Those whose inputs have known shapes, but whose outputs have shapes that depend on values or
  // on which branch is taken: indices in the main subgraph of `model`. Operations that read their
  // outputs are not among them.
  std::vector<uint32_t> open;
};

// Like specialize(), but shapes that depend on values stay what the model declares.
Result<PartlySpecializedModel> specializePartly(const graph::Model& model,
                                                std::span<const graph::Dimensions> inputs);

// The model for other dimensions of its first inputs, `now`, than those that the constants of
// shapes in it are made for, `before`: complete, with no dimension of 0. Further inputs are states.
// Inputs, states and what follows from them get their present shapes, and the constants that hold
// shapes follow (followConstants()). The result shares the pools of `model`, and has the same
// weights. It has passed graph::validate(). Errors: kUnsupported where an operation cannot follow
// or may mean something else, kBadData where shapes contradict each other.
Result<std::shared_ptr<const graph::Model>> resize(const graph::Model& model,
                                                   std::span<const graph::Dimensions> before,
                                                   std::span<const graph::Dimensions> now);

// The model for other dimensions of its first inputs, which may have another rank, too. Unlike
// resize(), as TensorFlow Lite does it: all constants and states stay what they are, and an
// operation means what it says, whatever the file's shapes were. Shapes that depend on values stay
// unknown. The result shares the pools of `model` and has passed graph::validate(), but not
// validateOperations(). kBadData where an operation cannot have such inputs; kUnsupported as for
// specialize().
Result<std::shared_ptr<const graph::Model>> inferAgain(const graph::Model& model,
                                                       std::span<const graph::Dimensions> inputs);

// What the shapes of a model's inputs tell of an output.
struct InferredOutput {
  graph::Dimensions dimensions;  // a dimension of 0 is 0
  // The bytes of its elements, where they follow from shapes, constants and inputs without
  // elements alone, as a sum over no elements does.
  std::optional<std::vector<std::byte>> value;
};

// The outputs that the model of inferAgain() has, where inputs may have no elements. A value of
// more than 64 KiB is not told. Errors: those of inferAgain(); kUnsupported also where a shape
// depends on values.
Result<std::vector<InferredOutput>> inferOutputs(const graph::Model& model,
                                                 std::span<const graph::Dimensions> inputs);

}  // namespace hearth::ops
