// SPDX-License-Identifier: Apache-2.0
// A fully connected layer of rows that are quantised while the model runs, on a product of ours.
#pragma once

#include <memory>

#include "drivers/cpu/hybrid_product.h"
#include "drivers/cpu/kernel.h"
#include "drivers/cpu/packed_weights.h"
#include "drivers/cpu/quantized_rows.h"

namespace hearth::cpu {

struct HybridLayer {
  HybridProduct product;  // without `packed`
  size_t rows = 0;
  QuantizedRows source;
  ValueId destination = 0;
  size_t outputOffset = 0;  // of the first column, in elements
};

// `place` has what XNNPACK packs for the layer.
Result<std::unique_ptr<Kernel>> makeHybridLayerKernel(HybridLayer layer,
                                                      const PackedWeights& weights,
                                                      WeightPlace place);

}  // namespace hearth::cpu
