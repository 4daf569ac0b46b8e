// SPDX-License-Identifier: Apache-2.0
// A fully connected layer or a convolution of numbers that are quantised while the model runs, on a
// product of ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "drivers/cpu/convolution.h"
#include "drivers/cpu/hybrid_product.h"
#include "drivers/cpu/int4_product.h"
#include "drivers/cpu/kernel.h"
#include "drivers/cpu/quantized_rows.h"

namespace hearth::cpu {

struct HybridLayer {
  size_t rows = 0;  // of the product, of one image
  QuantizedRows source;
  ValueId destination = 0;
  size_t outputOffset = 0;  // of the first column, in elements
  // Then rows are windows of images, each with parameters of its own; of one group.
  std::optional<Convolution> windows = std::nullopt;
};

// The product's packed weights outlive the kernel.
std::unique_ptr<Kernel> makeHybridLayerKernel(const HybridLayer& layer,
                                              const HybridProduct& product);
std::unique_ptr<Kernel> makeHybridLayerKernel(const HybridLayer& layer, const Int4Product& product);

}  // namespace hearth::cpu
