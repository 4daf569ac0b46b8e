// SPDX-License-Identifier: Apache-2.0
// Hybrid layers on products of ours: fully connected layers and convolutions whose activations are
// quantised while the model runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/microkernels/portable/convolution.h"
#include "drivers/cpu/microkernels/portable/qd8_f32_qb4w_gemm.h"
#include "drivers/cpu/microkernels/x86/avx2/avx2_gemm.h"
#include "drivers/cpu/microkernels/x86/avx512/qd8_f32_qc8w_gemm.h"

namespace hearth::cpu {

// The rows of an operand as int8 numbers, and an xnn_quantization_params for each row; behind the
// last one are XNN_EXTRA_QUANTIZATION_PARAMS more.
struct QuantizedRows {
  ValueId numbers = 0;
  ValueId parameters = 0;
};

struct Qd8Layer {
  size_t rows = 0;  // of the product; of a convolution for one image
  QuantizedRows source;
  ValueId destination = 0;
  size_t outputOffset = 0;  // elements of `destination` before the first column
  // Set for a convolution with one group: rows are windows of images, and each image has parameters
  // of its own.
  std::optional<Convolution> windows = std::nullopt;
};

// Makes the kernel. The product's packed weights must outlive it.
std::unique_ptr<Kernel> makeQd8LayerKernel(const Qd8Layer& layer, const Qd8Gemm& product);
std::unique_ptr<Kernel> makeQd8LayerKernel(const Qd8Layer& layer, const Qb4Gemm& product);
// The same for layers without windows.
std::unique_ptr<Kernel> makeQd8LayerKernel(const Qd8Layer& layer, const Avx2HybridGemm& product);

}  // namespace hearth::cpu
