// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drivers/cpu/lowering/pooling_layer.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Adds the node for average pooling of 8-bit tensors on a kernel of ours, with TFLite's very
// results: XNNPACK lacks int8, and for uint8 it rounds differently and divides by the size of the
// window even where a part of it lies in the padding. False for very large windows.
Result<bool> addQuantizedAveragePool(PlanBuilder* builder, const Pooling& pooling);

}  // namespace hearth::cpu
