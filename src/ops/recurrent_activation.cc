// SPDX-License-Identifier: Apache-2.0
#include "ops/recurrent_activation.h"

#include <algorithm>
#include <cmath>

#include "base/vector_dispatch.h"
#include "ops/dot_product.h"
#include "ops/real_values.h"
#include "ops/validation.h"

namespace hearth::ops {

Result<RecurrentActivation> parseRecurrentActivation(const OperationContext& context,
                                                     size_t index) {
  HEARTH_ASSIGN(const int32_t code, context.scalar<int32_t>(index));
  if (code < 0 || code > 6 || code == 5)
    return fail(ErrorCode::kBadData,
                "The activation (input {}) of {} is {}, it must be 0 to 4 or 6.", index,
                context.describe(), code);
  return static_cast<RecurrentActivation>(code);
}

float logistic(float value) {
  return 1.0f / (1.0f + std::exp(-value));
}

void applyActivation(RecurrentActivation activation, float* values, size_t count) {
  const auto clampAll = [&](float lowest, float highest) {
    for (size_t i = 0; i < count; ++i) values[i] = std::clamp(values[i], lowest, highest);
  };
  switch (activation) {
    case RecurrentActivation::kNone:
      return;
    case RecurrentActivation::kRelu:
      for (size_t i = 0; i < count; ++i) values[i] = std::max(values[i], 0.0f);
      return;
    case RecurrentActivation::kRelu1:
      return clampAll(-1.0f, 1.0f);
    case RecurrentActivation::kRelu6:
      return clampAll(0.0f, 6.0f);
    case RecurrentActivation::kTanh:
      for (size_t i = 0; i < count; ++i) values[i] = std::tanh(values[i]);
      return;
    case RecurrentActivation::kSigmoid:
      for (size_t i = 0; i < count; ++i) values[i] = logistic(values[i]);
      return;
  }
}

float dotProduct(const float* a, const float* b, size_t count) {
  float sum = 0.0f;
  float* result = &sum;
  base::onWidestVectors([=]() HEARTH_INLINE { *result = dotProductInline(a, b, count); });
  return sum;
}

void addProducts(const float* matrix, size_t rows, size_t columns, const Vectors& vectors,
                 float* target) {
  base::onWidestVectors([=]() HEARTH_INLINE {
    const auto add = [&]<size_t kRows, size_t kVectors>(size_t row, size_t vector) HEARTH_INLINE {
      addDotProducts<kRows, kVectors>(matrix + row * columns, columns,
                                      vectors.first + vector * vectors.stride, vectors.stride,
                                      columns, target + vector * rows + row, rows);
    };
    constexpr size_t kRows = 4;
    constexpr size_t kVectors = 2;
    size_t r = 0;
    for (; r + kRows <= rows; r += kRows) {
      size_t v = 0;
      for (; v + kVectors <= vectors.count; v += kVectors)
        add.template operator()<kRows, kVectors>(r, v);
      for (; v < vectors.count; ++v) add.template operator()<kRows, 1>(r, v);
    }
    for (; r < rows; ++r)
      for (size_t v = 0; v < vectors.count; ++v) add.template operator()<1, 1>(r, v);
  });
}

void addProduct(const float* matrix, size_t rows, size_t columns, const float* vector,
                float* target) {
  addProducts(matrix, rows, columns, {vector, columns, 1}, target);
}

void storeReal(const OperationContext& context, size_t output, const std::vector<float>& values) {
  if (!context.hasOutput(output)) return;
  RealOutput target(context.outputs[output]);
  std::copy_n(values.data(), std::min(values.size(), target.size()), target.data());
  target.store();
}

bool isGiven(const OperationContext& context, size_t index) {
  return context.hasInput(index) && context.inputs[index].elementCount() > 0;
}

Status requireGivenShape(const OperationContext& context, size_t index,
                         const Dimensions& expected) {
  return isGiven(context, index) ? requireShape(context, index, expected) : Status();
}

}  // namespace hearth::ops
