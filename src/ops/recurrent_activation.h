// SPDX-License-Identifier: Apache-2.0
// The activation codes of the recurrent operations, which NNAPI took from TFLite, and the inner
// products that they share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

enum class RecurrentActivation : int32_t {
  kNone = 0,
  kRelu = 1,
  kRelu1 = 2,
  kRelu6 = 3,
  kTanh = 4,
  kSigmoid = 6,
};

// The INT32 scalar input `index`. kBadData for an unknown code.
Result<RecurrentActivation> parseRecurrentActivation(const OperationContext& context, size_t index);

void applyActivation(RecurrentActivation activation, float* values, size_t count);

// 1 / (1 + exp(-value)), without overflow.
float logistic(float value);

float dotProduct(const float* a, const float* b, size_t count);

// target[r] += matrix[r, :] * vector, for every row r.
void addProduct(const float* matrix, size_t rows, size_t columns, const float* vector,
                float* target);

}  // namespace hearth::ops
