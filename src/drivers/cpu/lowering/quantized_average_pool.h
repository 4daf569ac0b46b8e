// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drivers/cpu/lowering/pooling_layer.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Average pooling of 8-bit tensors on a kernel of ours, with TFLite's very results: XNNPACK lacks
// int8, and for uint8 it rounds otherwise and divides by the size of the window also where part of
// it lies in the padding.
Result<bool> addQuantizedAveragePool(PlanBuilder* builder, const Pooling& pooling);

}  // namespace hearth::cpu
