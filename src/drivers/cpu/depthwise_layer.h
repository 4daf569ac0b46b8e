// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "drivers/cpu/convolution.h"
#include "drivers/cpu/depthwise_product.h"
#include "drivers/cpu/kernel.h"

namespace hearth::cpu {

// An int8 depthwise convolution whose outputs have as many channels as its inputs.
struct DepthwiseLayer {
  Convolution geometry;
  DepthwiseProduct product;
  int32_t inputZero = 0;
  ValueId source = 0, destination = 0;
};

// A kernel with a product of ours; packed weights stay where they are as long as it lives.
std::unique_ptr<Kernel> makeDepthwiseLayerKernel(const DepthwiseLayer& layer);

// Adds the node; false when the convolution is none of those, or this CPU lacks the instructions.
// Types and constants are those that XNNPACK takes.
Result<bool> addDepthwiseLayer(PlanBuilder* builder, const Convolution& convolution);

}  // namespace hearth::cpu
