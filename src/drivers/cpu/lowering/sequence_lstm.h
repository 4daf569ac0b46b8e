// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// QUANTIZED_SEQUENCE_LSTM with a cell that is prepared once for all runs; false when weights are
// known only at run time.
Result<bool> lowerQuantizedSequenceLstm(PlanBuilder* builder);

}  // namespace hearth::cpu
