// SPDX-License-Identifier: Apache-2.0
// Attributes of our kernels on AVX2. x86-64 only.
#pragma once

#include <immintrin.h>

#define HEARTH_AVX2 __attribute__((target("avx2,fma"), always_inline)) inline
#define HEARTH_AVX2_FUNCTION __attribute__((target("avx2,fma")))
