// SPDX-License-Identifier: Apache-2.0
// Sums of float32 numbers in float64 by vectors, which widen numbers while they read them: widening
// takes half the time then. Where the CPU lacks such vectors these return false and add nothing.
// Thread-safe.
#pragma once

#include <cstdint>

namespace hearth::ops {

// Whether the CPU has them.
bool hasFloatSums();

// Adds to each of `rows` sums the numbers of its row, which are `columns`.
bool addFloatRows(const float* source, int64_t rows, int64_t columns, double* sums);

// Adds `rows` rows, one after the other, to one row of `columns` sums.
bool addFloatColumns(const float* source, int64_t rows, int64_t columns, double* sums);

}  // namespace hearth::ops
