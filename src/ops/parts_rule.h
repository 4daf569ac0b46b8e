// SPDX-License-Identifier: Apache-2.0
// The table of rules by which operations keep parts apart (followed_shapes.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/operation.h"

namespace hearth::ops {

struct PartsRule {
  enum class Kind : uint8_t {
    kKeep,            // all dimensions stay
    kBroadcast,       // inputs are aligned at their last dimensions
    kKeepBatch,       // dimension 0 is a batch, whose size may change by a factor
    kKeepOffAxis,     // all dimensions stay, one of them is mixed: the last, or the one of `axis`
    kReverse,         // the same, of the only element of a list
    kReduceOne,       // the dimension of a scalar goes
    kReduce,          // the dimensions of a list go
    kKeepOffLastTwo,  // all dimensions stay, the last two are mixed
    kReshape,
    kMoveInOrder,  // dimensions of 1 come or go, the others keep their order
    kTranspose,
    kConcatenate,
    kPack,
    kFullyConnected,
    kMultiply,
    kGather,
    kRecur,    // the batch of a recurrent operation
    kDropAll,  // the outputs hold no elements of the inputs
    kMix,      // the operation may mix parts
  };
  static constexpr size_t kNone = SIZE_MAX;

  Kind kind = Kind::kMix;
  size_t axis = kNone;  // the input that names dimensions
};

PartsRule partsRuleOf(OperationType type);

}  // namespace hearth::ops
