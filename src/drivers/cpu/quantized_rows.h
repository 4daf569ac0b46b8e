// SPDX-License-Identifier: Apache-2.0
// Activations of hybrid layers: float32 rows as 8-bit numbers.
#pragma once

#include <cstddef>

#include "drivers/cpu/plan_builder.h"

namespace hearth::cpu {

// The rows of an operand as int8 numbers, and an xnn_quantization_params for each row, with
// XNN_EXTRA_QUANTIZATION_PARAMS more behind the last.
struct QuantizedRows {
  ValueId numbers = 0;
  ValueId parameters = 0;
};

// Values that hold them, made once for all layers that read the operand in rows of `channels`.
QuantizedRows quantizeRows(PlanBuilder* builder, uint32_t operand, size_t rows, size_t channels);

}  // namespace hearth::cpu
