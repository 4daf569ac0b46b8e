// SPDX-License-Identifier: Apache-2.0
// What becomes of a model's operations when its inputs get other shapes than the model declares:
// which constants hold a shape and follow it, and whether the operation still means the same.
//
// A dimension that was 1 and has grown, such as a batch, holds parts which the model never saw
// together: the results for each have to be those that the declared model gives. So the operations
// behind it must not mix parts. A dimension that was larger is another matter: what an operation
// does along it is what the model wants for any size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/model.h"
#include "ops/operation.h"

namespace hearth::ops {

// A tensor, as the model declares it and as it is now.
struct FollowedTensor {
  Dimensions before;  // complete where isKnown
  Dimensions now;
  bool isKnown = false;  // both shapes
  // The dimensions that hold parts: bit 0 stands for dimension 0.
  uint64_t parts = 0;
  // Whether RESHAPE has joined `partsBefore` parts with other dimensions to dimension 0, of which
  // there are `partsNow` now.
  bool isJoined = false;
  uint32_t partsBefore = 1;
  uint32_t partsNow = 1;

  bool isChanged() const { return isKnown && before != now; }
};

// A constant that takes the place of an operation's input.
struct FollowedConstant {
  size_t input = 0;
  graph::Operand operand;       // without a place
  std::vector<uint64_t> value;  // memory of the elements, aligned for all types
};

// The constants of the operation that have to follow its inputs: the shapes in RESHAPE,
// BROADCAST_TO, SLICE, STRIDED_SLICE and TRANSPOSE_CONV_2D, and what CONCATENATION joins with each
// part. `context` has the present dimensions of the inputs, `outputs` the shapes before.
// kUnsupported where a constant can be read in several ways.
Result<std::vector<FollowedConstant>> followConstants(const OperationContext& context,
                                                      std::span<const FollowedTensor> inputs,
                                                      std::span<const FollowedTensor> outputs);

// Tells where the parts lie in the outputs of an operation whose prepare() is done. kUnsupported
// where it mixes them or might.
Status followOutputs(const OperationContext& context, std::span<const FollowedTensor> inputs,
                     std::span<FollowedTensor> outputs);

// The dimension of input 0 that is the batch of the states of a recurrent operation; nothing for
// other operations.
Result<std::optional<size_t>> batchOfStates(const OperationContext& context);

// "its input "x" is [4,2,2,8] in place of [1,2,2,8]", of the first input that changed.
std::string describeChange(const OperationContext& context, std::span<const FollowedTensor> inputs);

}  // namespace hearth::ops
