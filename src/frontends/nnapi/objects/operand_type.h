// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "android/NeuralNetworksTypes.h"
#include "base/result.h"
#include "graph/model.h"

namespace hearth::nnapi {

// The operand that a type of the C API describes, without value. Errors are kBadData: unknown type,
// dimensions of a scalar, a count without pointer or a pointer without count, more than 2^32 - 1
// bytes, scale or zero point that the type does not have.
Result<graph::Operand> toOperand(const ANeuralNetworksOperandType& type);

// What two descriptions of one tensor know together: 0 is an unknown dimension, no dimensions an
// unknown rank. kBadData when they contradict each other.
Result<graph::Dimensions> combineDimensions(const graph::Dimensions& a, const graph::Dimensions& b);

}  // namespace hearth::nnapi
