// SPDX-License-Identifier: Apache-2.0
// Sums and products of float32 numbers in float64, and the greatest and the least of them, by
// vectors, which widen numbers while they read them: widening takes half the time then. Where the
// CPU lacks such vectors these return false and change nothing. Thread-safe.
#pragma once

#include <cstdint>

namespace hearth::ops {

// Whether the CPU has them.
bool hasFloatFolds();

// Adds to each of `rows` sums the numbers of its row, which are `columns`.
bool addFloatRows(const float* source, int64_t rows, int64_t columns, double* sums);
// Multiplies each of `rows` products by the numbers of its row.
bool multiplyFloatRows(const float* source, int64_t rows, int64_t columns, double* products);
// Replaces each of `rows` numbers by the greatest, or the least, of it and the numbers of its row.
// NaN among the latter does not count.
bool raiseToFloatRows(const float* source, int64_t rows, int64_t columns, float* greatest);
bool lowerToFloatRows(const float* source, int64_t rows, int64_t columns, float* least);

// Adds `rows` rows, one after the other, to one row of `columns` sums.
bool addFloatColumns(const float* source, int64_t rows, int64_t columns, double* sums);
// Multiplies one row of `columns` products by them.
bool multiplyFloatColumns(const float* source, int64_t rows, int64_t columns, double* products);

}  // namespace hearth::ops
