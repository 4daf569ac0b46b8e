// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "drivers/cpu/lowering/layer_scales.h"
#include "drivers/cpu/plan/plan_builder.h"
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
                            const graph::Operand& output, const LayerScales& scales,
                            ops::FusedActivation activation) {
    return {scales.input,
            scales.filter,
            scales.output,
            input.zeroPoint,
            filter.zeroPoint,
            output.zeroPoint,
            ops::activationRange(activation),
            ops::quantizedActivationRange(activation, output)};
  }
};

// Whether XNNPACK has a convolution or fully connected layer for the types of these operands, whose
// filter and bias (UINT32_MAX: none) are weights.
bool typesFit(PlanBuilder* builder, uint32_t input, uint32_t filter, uint32_t bias,
              uint32_t output);

}  // namespace hearth::cpu
