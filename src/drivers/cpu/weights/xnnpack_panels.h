// SPDX-License-Identifier: Apache-2.0
// Whether XNNPACK packs weights on this CPU in the panels that our matrix products read. The first
// call of each function packs small weights to see, unless the store knows the answer. All
// functions are thread-safe.
#pragma once

namespace hearth::cpu {

// float32 weights, for F32Gemm.
bool hasF32Gemm();

// int8 weights with a scale for each output channel, and int8 inputs, for Qs8Gemm.
bool hasQs8Gemm();

// The same, for AmxGemm.
bool hasAmxGemm();

// The same weights with inputs that are quantised while the model runs, for Qd8Gemm.
bool hasQd8Gemm();

// The same for Avx2Qd8Panels, on CPUs without AVX-512 VNNI.
bool hasAvx2Qd8Panels();

}  // namespace hearth::cpu
