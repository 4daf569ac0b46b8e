// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"
#include "drivers/cpu/kernels/qs8_layer.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Whether an int8 depthwise convolution reads one channel and writes several. It is a convolution
// whose weights lie in another order, and that the kernel of Qs8Layer computes.
bool isOfOneChannel(const Convolution& geometry);

// That convolution, with its product but for what quantises and what is packed.
Qs8Layer oneChannelLayer(const Convolution& geometry);

// Packs weights [kernelHeight][kernelWidth][outputs] for it, with a bias (may be null) and a factor
// for each output channel.
void packOneChannel(const Qs8Layer& layer, const int8_t* weights, const int32_t* bias,
                    const float* factors, uint8_t* packed);

// Adds the node; false for other convolutions, and when this CPU lacks AVX-512 VNNI. The caller has
// checked types and constants.
Result<bool> addQs8OneChannel(PlanBuilder* builder, const Convolution& convolution);

}  // namespace hearth::cpu
