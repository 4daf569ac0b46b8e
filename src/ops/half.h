// SPDX-License-Identifier: Apache-2.0
// The element type of TENSOR_FLOAT16: IEEE binary16. Kernels compute in float and round once.
#pragma once

#include <cstddef>

namespace hearth::ops {

using Half = _Float16;

// Converts `count` elements, by the CPU's instructions where it has them. The bits are those of
// static_cast: halves are widened exactly, floats are rounded to nearest, ties to even, and a
// signalling NaN becomes the quiet one with its payload.
void widenHalves(const Half* source, size_t count, float* target);
void narrowFloats(const float* source, size_t count, Half* target);

}  // namespace hearth::ops
