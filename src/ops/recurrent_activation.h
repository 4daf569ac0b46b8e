// SPDX-License-Identifier: Apache-2.0
// What the recurrent operations share: activation codes (those of TFLite, which NNAPI adopted),
// inner products, optional arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <vector>

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

// Vectors of floats: the first lies at `first`, each of the others `stride` floats after its
// predecessor.
struct Vectors {
  const float* first;
  size_t stride;
  size_t count;
};

// target[v * rows + r] += matrix[r, :] * vector v, for every row r and every vector.
void addProducts(const float* matrix, size_t rows, size_t columns, const Vectors& vectors,
                 float* target);
// target[r] += matrix[r, :] * vector, for every row r.
void addProduct(const float* matrix, size_t rows, size_t columns, const float* vector,
                float* target);

// Writes values to an output in its type. Does nothing when the output is omitted.
void storeReal(const OperationContext& context, size_t output, const std::vector<float>& values);

// True when the input is given and has elements.
bool isGiven(const OperationContext& context, size_t index);

// If the input is given, it has these dimensions.
Status requireGivenShape(const OperationContext& context, size_t index, const Dimensions& expected);

// Either all of these inputs are given or none is; isThere(context, index) decides.
template <typename IsThere>
Status requireTogether(const OperationContext& context, IsThere isThere,
                       std::initializer_list<size_t> indices) {
  const size_t first = *indices.begin();
  for (const size_t index : indices)
    if (std::invoke(isThere, context, index) != std::invoke(isThere, context, first))
      return fail(ErrorCode::kBadData,
                  "{} has one of the inputs {} and {}; they are given together or not at all.",
                  context.describe(), first, index);
  return {};
}

}  // namespace hearth::ops
