// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "graph/model.h"
#include "ops/activation.h"

namespace hearth::cpu {

// What XNNPACK's creation calls want to know of the numbers of a layer: scales and zero points of
// 8-bit tensors, and the range of the activation, as numbers and as steps of the output.
struct LayerArithmetic {
  float inputScale = 0, kernelScale = 0, outputScale = 0;
  int32_t inputZero = 0, kernelZero = 0, outputZero = 0;
  ops::ActivationRange floats{};
  ops::QuantizedRange steps{};

  static LayerArithmetic of(const graph::Operand& input, const graph::Operand& filter,
                            const graph::Operand& output, ops::FusedActivation activation) {
    return {input.scale,
            filter.scale,
            output.scale,
            input.zeroPoint,
            filter.zeroPoint,
            output.zeroPoint,
            ops::activationRange(activation),
            ops::quantizedActivationRange(activation, output)};
  }
};

}  // namespace hearth::cpu
