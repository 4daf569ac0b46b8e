// SPDX-License-Identifier: Apache-2.0
// Activations of hybrid layers: float32 rows that are quantised to 8-bit numbers.
#pragma once

#include <cstddef>

#include "drivers/cpu/kernels/qd8_layer.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// The values of the quantised rows of an operand. The first call adds the node; all layers that
// read the operand in rows of `channels` elements share it.
QuantizedRows quantizeRows(PlanBuilder* builder, uint32_t operand, size_t rows, size_t channels);

}  // namespace hearth::cpu
