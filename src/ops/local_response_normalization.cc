// SPDX-License-Identifier: Apache-2.0
// LOCAL_RESPONSE_NORMALIZATION: multiplies each element by (bias + alpha * s)^-beta, where s is the
// sum of squares of the elements up to `radius` away along an axis. Inputs: data, radius, bias,
// alpha, beta, axis (optional, default: the last).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/vector_dispatch.h"
#include "ops/axis_rows.h"
#include "ops/dot_product.h"
#include "ops/real_values.h"
#include "ops/registry.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

struct Parameters {
  size_t radius = 0;
  float bias = 0.0f, alpha = 0.0f, beta = 0.0f;
  size_t axis = 0;
};

// Normalising an element takes as long as copying this many.
constexpr uint64_t kWork = 8;
// Adding up each window costs more than differences of running sums where windows are wider.
constexpr size_t kMostRadius = 64;
// Squares that are kept at a time.
constexpr size_t kSquares = 2048;

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(5, 6, 1));
  HEARTH_TRY(signature.inputType(0, kFloatTensors));
  HEARTH_TRY(signature.inputType(1, OperandType::kInt32));
  for (size_t i = 2; i < 5; ++i) HEARTH_TRY(signature.floatScalar(i, 0));
  HEARTH_TRY(signature.optionalInputType(5, OperandType::kInt32));
  HEARTH_TRY(signature.inputRank(0, 1, kMaximumRank));
  return signature.outputTypeLike(0, 0);
}

Result<Parameters> parse(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 5, 1));
  HEARTH_TRY(requireRank(context, 0, 1, kMaximumRank));
  Parameters p;
  HEARTH_ASSIGN(const int32_t radius, context.scalar<int32_t>(1));
  if (radius < 0)
    return fail(ErrorCode::kBadData, "The radius (input 1) of {} is {}, it must not be negative.",
                context.describe(), radius);
  p.radius = static_cast<size_t>(radius);
  HEARTH_ASSIGN(p.bias, floatScalar(context, 2));
  HEARTH_ASSIGN(p.alpha, floatScalar(context, 3));
  HEARTH_ASSIGN(p.beta, floatScalar(context, 4));
  HEARTH_ASSIGN(const int32_t axis, context.scalar<int32_t>(5, -1));
  HEARTH_ASSIGN(p.axis, resolveAxis(context, axis, context.inputs[0].rank()));
  return p;
}

// One row of the output. Narrow windows are added up one by one; for wide ones sums of the squares
// of the first i elements are kept, so that any radius costs the same.
void normalizeRow(const Parameters& p, const float* source, const AxisRow& row, float* target) {
  const bool isNarrow = p.radius <= kMostRadius;
  std::vector<double> sums(row.size + 1);
  for (size_t i = 0; i < row.size; ++i) {
    const double value = source[row.index(i)];
    sums[i + 1] = value * value + (isNarrow ? 0.0 : sums[i]);
  }
  for (size_t i = 0; i < row.size; ++i) {
    const size_t begin = i - std::min(i, p.radius);
    const size_t end = std::min(row.size, i + p.radius + 1);
    double sum = 0.0;
    if (isNarrow)
      for (size_t k = begin; k < end; ++k) sum += sums[k + 1];
    else
      sum = sums[end] - sums[begin];
    const double base = p.bias + p.alpha * sum;
    target[row.index(i)] = static_cast<float>(source[row.index(i)] * std::pow(base, -p.beta));
  }
}

// base^-beta for the exponents that models use.
struct InverseRoot {
  HEARTH_INLINE float operator()(float base) const { return 1.0f / std::sqrt(base); }
};
struct InverseRootOfCube {
  HEARTH_INLINE float operator()(float base) const {
    const float root = std::sqrt(base);
    return 1.0f / (root * std::sqrt(root));
  }
};
struct Inverse {
  HEARTH_INLINE float operator()(float base) const { return 1.0f / base; }
};

// Normalises `rows` rows of neighbouring elements in float32. Returns the number of the first row
// with a base that is not a finite positive number, or `rows`; that row is not complete.
template <typename Power>
size_t normalizeRows(const Parameters& p, const float* source, size_t rows, size_t size,
                     float* target, Power power) {
  // The squares of some rows, each between zeros, so that no window is cut: a window that is read
  // just after its squares are written would wait for them. Vectors may reach beyond the row.
  const size_t radius = std::min(p.radius, size);
  const size_t width = (size + kDotLanes - 1) / kDotLanes * kDotLanes;
  const size_t stride = width + 2 * radius;
  const size_t together = std::clamp<size_t>(kSquares / stride, 1, rows);
  std::vector<float> scratch(together * stride + width);
  float* const squares = scratch.data();
  float* const sums = squares + together * stride;
  size_t done = 0;
  size_t* const result = &done;
  base::onWidestVectors([=, bias = p.bias, alpha = p.alpha]() HEARTH_INLINE {
    for (size_t row = 0; row < rows; ++row) {
      if (row % together == 0) {
        const size_t count = std::min(together, rows - row);
        for (size_t r = 0; r < count; ++r) {
          const float* const from = source + (row + r) * size;
          float* const to = squares + r * stride + radius;
#pragma GCC ivdep
          for (size_t i = 0; i < size; ++i) to[i] = from[i] * from[i];
        }
      }
      const float* const windows = squares + row % together * stride;
      for (size_t i = 0; i < width; i += kDotLanes) {
        DotLanes sum;
        std::memcpy(&sum, windows + i, sizeof(sum));
        for (size_t k = 1; k <= 2 * radius; ++k) {
          DotLanes next;
          std::memcpy(&next, windows + i + k, sizeof(next));
          sum += next;
        }
        std::memcpy(sums + i, &sum, sizeof(sum));
      }
      const float* const from = source + row * size;
      float* const to = target + row * size;
      uint32_t isOdd = 0;
#pragma GCC ivdep
      for (size_t i = 0; i < size; ++i) {
        const float base = bias + alpha * sums[i];
        isOdd |= base > 0.0f && base <= std::numeric_limits<float>::max() ? 0u : 1u;
        sums[i] = power(base);
      }
      *result = row;
      if (isOdd != 0) return;
#pragma GCC ivdep
      for (size_t i = 0; i < size; ++i) to[i] = from[i] * sums[i];
    }
    *result = rows;
  });
  return done;
}

size_t normalizeRows(const Parameters& p, const float* source, size_t rows, size_t size,
                     float* target) {
  if (p.radius > kMostRadius) return 0;
  if (p.beta == 0.5f) return normalizeRows(p, source, rows, size, target, InverseRoot());
  if (p.beta == 0.75f) return normalizeRows(p, source, rows, size, target, InverseRootOfCube());
  if (p.beta == 1.0f) return normalizeRows(p, source, rows, size, target, Inverse());
  return 0;
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters p, parse(context));
  const RealInput input(context.inputs[0]);
  RealOutput output(context.outputs[0]);
  const float* const source = input.data();
  float* const target = output.data();
  const AxisBlocks blocks(context.inputs[0].dimensions, p.axis);
  if (input.size() == 0) return {};
  const uint64_t rowBytes = blocks.size * sizeof(float);
  threads::forRanges(context.threadPool, blocks.outer * blocks.inner,
                     threads::grainOf(rowBytes * kWork), [&](uint64_t begin, uint64_t end) {
                       for (uint64_t row = begin; row < end; ++row) {
                         if (blocks.inner == 1) {
                           row += normalizeRows(p, source + row * blocks.size, end - row,
                                                blocks.size, target + row * blocks.size);
                           if (row == end) break;
                         }
                         const uint64_t first =
                             row / blocks.inner * blocks.size * blocks.inner + row % blocks.inner;
                         normalizeRow(p, source, {first, blocks.inner, blocks.size}, target);
                       }
                     });
  output.store();
  return {};
}

}  // namespace

const OperationDefinition kLocalResponseNormalizationOperation = {
    OperationType::kLocalResponseNormalization, validate, prepareLikeInput<parse>, execute};

}  // namespace hearth::ops
