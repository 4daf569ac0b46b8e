// SPDX-License-Identifier: Apache-2.0
// Batches and time steps of the sequence operations, whose tensors are [batch, time, size] or, time
// major, [time, batch, size].
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/operation.h"
#include "ops/validation.h"

namespace hearth::ops {

// Checks a sequence of floats as input 0, an activation code, and outputs of the input's type.
inline Status validateSequence(const Signature& signature, size_t activation) {
  HEARTH_TRY(signature.inputType(0, kFloatTensors));
  HEARTH_TRY(signature.inputRank(0, 3, 3));
  HEARTH_TRY(signature.inputType(activation, OperandType::kInt32));
  for (size_t i = 0; i < signature.outputCount(); ++i) HEARTH_TRY(signature.outputTypeLike(i, 0));
  return {};
}

struct SequenceShape {
  uint32_t batches = 0;
  uint32_t steps = 0;
  bool isTimeMajor = false;

  // `input` has rank 3.
  static SequenceShape of(const Dimensions& input, bool isTimeMajor) {
    return isTimeMajor ? SequenceShape{input[1], input[0], true}
                       : SequenceShape{input[0], input[1], false};
  }

  size_t row(size_t batch, size_t step) const {
    return isTimeMajor ? step * batches + batch : batch * steps + step;
  }
};

// Calls visit(batch, row) for each time step in order, last first when `isReversed`.
template <typename Visit>
void forEachStep(const SequenceShape& shape, bool isReversed, Visit&& visit) {
  for (size_t i = 0; i < shape.steps; ++i) {
    const size_t step = isReversed ? shape.steps - 1 - i : i;
    for (size_t batch = 0; batch < shape.batches; ++batch) visit(batch, shape.row(batch, step));
  }
}

}  // namespace hearth::ops
