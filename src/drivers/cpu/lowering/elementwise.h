// SPDX-License-Identifier: Apache-2.0
// Element-wise operations on XNNPACK. A fused activation becomes a second node that runs in place.
// All return false for types, shapes and scales that XNNPACK lacks.
#pragma once

#include <hearth_xnnpack.h>

#include <cstdint>

#include "drivers/cpu/plan/plan_builder.h"
#include "ops/activation.h"

namespace hearth::cpu {

// output = fuse(a op b), with broadcasting.
Result<bool> addBinary(PlanBuilder* builder, xnn_binary_operator op, uint32_t a, uint32_t b,
                       uint32_t output, ops::FusedActivation activation);

// output = op(input), both of any numeric type that XNNPACK converts between.
Result<bool> addUnary(PlanBuilder* builder, xnn_unary_operator op, const xnn_unary_params* params,
                      uint32_t input, uint32_t output);

// output = input limited to the activation's range.
Result<bool> addClamp(PlanBuilder* builder, uint32_t input, uint32_t output,
                      ops::FusedActivation activation);

// Softmax over the last axis.
Result<bool> addSoftmax(PlanBuilder* builder, uint32_t input, uint32_t output, float beta);

}  // namespace hearth::cpu
