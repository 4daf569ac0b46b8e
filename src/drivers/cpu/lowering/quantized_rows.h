// SPDX-License-Identifier: Apache-2.0
// Activations of hybrid layers: float32 rows as 8-bit numbers.
#pragma once

#include <cstddef>

#include "drivers/cpu/kernels/qd8_layer.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Values that hold them, made once for all layers that read the operand in rows of `channels`.
QuantizedRows quantizeRows(PlanBuilder* builder, uint32_t operand, size_t rows, size_t channels);

}  // namespace hearth::cpu
