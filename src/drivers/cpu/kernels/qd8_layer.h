// SPDX-License-Identifier: Apache-2.0
// A fully connected layer or a convolution of numbers that are quantised while the model runs, on a
// product of ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/microkernels/convolution.h"
#include "drivers/cpu/microkernels/qd8_f32_qb4w_gemm.h"
#include "drivers/cpu/microkernels/qd8_f32_qc8w_gemm.h"

namespace hearth::cpu {

// The rows of an operand as int8 numbers, and an xnn_quantization_params for each row, with
// XNN_EXTRA_QUANTIZATION_PARAMS more behind the last.
struct QuantizedRows {
  ValueId numbers = 0;
  ValueId parameters = 0;
};

struct Qd8Layer {
  size_t rows = 0;  // of the product, of one image
  QuantizedRows source;
  ValueId destination = 0;
  size_t outputOffset = 0;  // of the first column, in elements
  // Then rows are windows of images, each with parameters of its own; of one group.
  std::optional<Convolution> windows = std::nullopt;
};

// The product's packed weights outlive the kernel.
std::unique_ptr<Kernel> makeQd8LayerKernel(const Qd8Layer& layer, const Qd8Gemm& product);
std::unique_ptr<Kernel> makeQd8LayerKernel(const Qd8Layer& layer, const Qb4Gemm& product);

}  // namespace hearth::cpu
