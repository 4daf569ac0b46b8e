// SPDX-License-Identifier: Apache-2.0
// FULLY_CONNECTED: its arguments, parsed.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "ops/activation.h"
#include "ops/operation.h"

namespace hearth::ops {

// The input is taken as [batches, inputSize], the weights are [units, inputSize]. With a float32
// input and weights of 8 or 4 bits the layer is hybrid (dynamic_quantization.h).
struct FullyConnectedParameters {
  uint32_t batches = 0;
  uint32_t inputSize = 0;
  uint32_t units = 0;
  FusedActivation activation = FusedActivation::kNone;
  // NNAPI's output is [batches, units]. If the model declares an output of the input's rank, the
  // leading dimensions of the input are kept instead (TFLite's keep_num_dims).
  Dimensions outputDimensions;
};

// Reads and checks every argument; shapes of inputs must be known. Errors as parseConv2d().
Result<FullyConnectedParameters> parseFullyConnected(const OperationContext& context);

}  // namespace hearth::ops
