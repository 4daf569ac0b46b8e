// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "drivers/cpu/convolution.h"
#include "drivers/cpu/int8_product.h"
#include "drivers/cpu/kernel.h"
#include "drivers/cpu/packed_weights.h"

namespace hearth::cpu {

// An int8 convolution with one group.
struct Int8Layer {
  Convolution geometry;
  Int8Product product;  // its packed weights stay where they are as long as the kernel lives
  int32_t inputZero = 0;
  ValueId source = 0, destination = 0;
};

// Whether XNNPACK packs the weights of the geometry as those of windows gathered to one row each.
bool isInt8Layer(const Convolution& geometry);

// A kernel with a product of ours, where hasInt8Product(), over what XNNPACK's creation call has
// packed at `place`. kUnsupported when that is not of the layer's size.
Result<std::unique_ptr<Kernel>> makeInt8LayerKernel(Int8Layer layer, const PackedWeights& weights,
                                                    WeightPlace place);

}  // namespace hearth::cpu
