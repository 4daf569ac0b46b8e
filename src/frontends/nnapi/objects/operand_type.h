// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "android/NeuralNetworksTypes.h"
#include "base/result.h"
#include "graph/model.h"

namespace hearth::nnapi {

// Converts a type of the C API to an operand without value. Errors are kBadData: an unknown type, a
// scalar with dimensions, a count without pointer or a pointer without count, more than 2^32 - 1
// bytes, a scale or zero point that the type cannot have.
Result<graph::Operand> toOperand(const ANeuralNetworksOperandType& type);

// Combines the dimensions of two descriptions of one tensor; 0 is an unknown dimension, no
// dimensions an unknown rank. kBadData when they contradict each other.
Result<graph::Dimensions> combineDimensions(const graph::Dimensions& a, const graph::Dimensions& b);

}  // namespace hearth::nnapi
