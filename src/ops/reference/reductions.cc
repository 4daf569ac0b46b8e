// SPDX-License-Identifier: Apache-2.0
// Sums, products, extremes and their places, along some dimensions; top-k and running sums.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>

#include "ops/element_visitor.h"
#include "ops/half.h"
#include "ops/reduce.h"
#include "ops/reference/elements.h"
#include "ops/reference/kernels.h"
#include "ops/topk_v2.h"
#include "ops/validation.h"

namespace hearth::ops::reference {
namespace {

// Calls visit(place, result) for each element of the data, where `result` is the place of its
// result.
template <typename Visit>
void forEachReduced(const OperationContext& context, const ReduceParameters& parameters,
                    const Visit& visit) {
  const Dimensions& data = context.inputs[0].dimensions;
  // Keeping reduced dimensions as 1 does not change the order of results.
  Dimensions kept = data;
  for (size_t i = 0; i < kept.size(); ++i)
    if (parameters.isReduced[i]) kept[i] = 1;
  forEach(data,
          [&](const Index& index, int64_t place) { visit(place, broadcastPlace(index, kept)); });
}

// Sums, means and products. Sums of quantised numbers are exact: they count steps from the zero
// point.
Status reduceReals(const OperationContext& context, const ReduceParameters& parameters) {
  const OperationType type = context.operation->type;
  const bool isProduct = type == OperationType::kReduceProd;
  const Tensor& data = context.inputs[0];
  const Tensor& output = context.outputs[0];
  const bool areSteps = !isFloat(data.type()) && !isProduct;
  const int64_t count = countOf(output.dimensions);
  std::vector<double> results(static_cast<size_t>(count), isProduct ? 1.0 : 0.0);
  forEachReduced(context, parameters, [&](int64_t place, int64_t result) {
    double& value = results[static_cast<size_t>(result)];
    const double element =
        areSteps ? static_cast<double>(storedAt(data, place)) - data.operand->zeroPoint
                 : realAt(data, place);
    value = isProduct ? value * element : value + element;
  });
  const double size = static_cast<double>(countOf(data.dimensions)) / static_cast<double>(count);
  // The mean of no quantised numbers is the zero point.
  const double divisor = type == OperationType::kMean && !(areSteps && size == 0) ? size : 1.0;
  for (int64_t i = 0; i < count; ++i)
    putReal(
        output, i,
        (areSteps ? double{data.operand->scale} : 1.0) * results[static_cast<size_t>(i)] / divisor);
  return {};
}

// Sums and products keep their lower bits. Means are cut towards zero; the mean of no elements is
// 0.
template <typename T>
Status reduceIntegers(const OperationContext& context, const ReduceParameters& parameters) {
  const OperationType type = context.operation->type;
  const bool isProduct = type == OperationType::kReduceProd;
  const Tensor& output = context.outputs[0];
  const int64_t count = countOf(output.dimensions);
  std::vector<uint64_t> results(static_cast<size_t>(count), isProduct ? 1 : 0);
  forEachReduced(context, parameters, [&](int64_t place, int64_t result) {
    uint64_t& value = results[static_cast<size_t>(result)];
    const auto element = static_cast<uint64_t>(loadAs<T>(context.inputs[0], place));
    value = isProduct ? value * element : value + element;
  });
  const int64_t size = countOf(context.inputs[0].dimensions) / count;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t value = results[static_cast<size_t>(i)];
    if (type == OperationType::kMean && size == 0)
      value = 0;
    else if (type == OperationType::kMean && std::is_signed_v<T>)
      value = static_cast<uint64_t>(static_cast<int64_t>(value) / size);
    else if (type == OperationType::kMean)
      value /= static_cast<uint64_t>(size);
    storeAs<T>(output, i, static_cast<T>(value));
  }
  return {};
}

// The extreme of no elements is the value furthest from it. NaN is neither greater nor less.
template <typename T>
Status findExtremes(const OperationContext& context, const ReduceParameters& parameters) {
  const bool isGreatest = context.operation->type == OperationType::kReduceMax;
  const Tensor& output = context.outputs[0];
  using Limits = std::numeric_limits<std::conditional_t<std::is_same_v<T, Half>, float, T>>;
  const auto greatest = Limits::has_infinity ? Limits::infinity() : Limits::max();
  const auto least = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  for (int64_t i = 0; i < countOf(output.dimensions); ++i)
    storeAs<T>(output, i, static_cast<T>(isGreatest ? least : greatest));
  forEachReduced(context, parameters, [&](int64_t place, int64_t result) {
    const T value = loadAs<T>(context.inputs[0], place);
    const T best = loadAs<T>(output, result);
    if (isGreatest ? value > best : value < best) storeAs<T>(output, result, value);
  });
  return {};
}

Status combineTruths(const OperationContext& context, const ReduceParameters& parameters) {
  const bool wantsAll = context.operation->type == OperationType::kReduceAll;
  const Tensor& output = context.outputs[0];
  for (int64_t i = 0; i < countOf(output.dimensions); ++i) putInteger(output, i, wantsAll ? 1 : 0);
  forEachReduced(context, parameters, [&](int64_t place, int64_t result) {
    const bool value = integerAt(context.inputs[0], place) != 0;
    if (value != wantsAll) putInteger(output, result, value ? 1 : 0);
  });
  return {};
}

// NaN is smaller than all numbers.
template <typename T>
bool isLarger(T a, T b) {
  if constexpr (!std::is_integral_v<T>)
    if (b != b) return a == a;
  return a > b;
}

}  // namespace

Status reduce(const OperationContext& context) {
  HEARTH_ASSIGN(const ReduceParameters parameters, parseReduce(context));
  const OperationType type = context.operation->type;
  const Tensor& data = context.inputs[0];
  if (countOf(context.outputs[0].dimensions) == 0) return {};
  if (type == OperationType::kReduceAll || type == OperationType::kReduceAny)
    return combineTruths(context, parameters);
  return visitElementType(data.type(), [&]<typename T>(std::type_identity<T>) -> Status {
    if (type == OperationType::kReduceMax || type == OperationType::kReduceMin)
      return findExtremes<T>(context, parameters);
    if constexpr (std::is_integral_v<T>) {
      if (sizeof(T) > 2 || !(data.operand->scale > 0.0f))
        return reduceIntegers<T>(context, parameters);
    }
    return reduceReals(context, parameters);
  });
}

// The first of equal elements wins; NaN is neither greater nor less.
Status findPlaces(const OperationContext& context) {
  const OperationType type = context.operation->type;
  const bool isGreatest = type == OperationType::kArgmax || type == OperationType::kArgmax64;
  const Tensor& data = context.inputs[0];
  HEARTH_ASSIGN(const int32_t value, context.scalar<int32_t>(1));
  HEARTH_ASSIGN(const size_t axis, resolveAxis(context, value, data.rank()));
  return visitElementType(data.type(), [&]<typename T>(std::type_identity<T>) -> Status {
    int64_t result = 0;
    forEachRow(data.dimensions, axis, [&](int64_t first, int64_t step, int64_t size) {
      int64_t best = 0;
      for (int64_t i = 1; i < size; ++i) {
        const T element = loadAs<T>(data, first + i * step);
        const T other = loadAs<T>(data, first + best * step);
        if (isGreatest ? element > other : element < other) best = i;
      }
      putInteger(context.outputs[0], result++, best);
    });
    return {};
  });
}

// The largest elements of each row and their places, the earlier of equal ones first.
Status findLargest(const OperationContext& context) {
  const Tensor& data = context.inputs[0];
  HEARTH_ASSIGN(const int32_t wanted, parseTopkCount(context));
  if (countOf(data.dimensions) == 0) return {};
  const int64_t size = data.dimensions.back();
  return visitElementType(data.type(), [&]<typename T>(std::type_identity<T>) -> Status {
    std::vector<int32_t> order(static_cast<size_t>(size));
    int64_t result = 0;
    for (int64_t first = 0; first < countOf(data.dimensions); first += size) {
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order, [&](int32_t a, int32_t b) {
        return isLarger(loadAs<T>(data, first + a), loadAs<T>(data, first + b));
      });
      for (int32_t i = 0; i < wanted; ++i, ++result) {
        const int32_t place = order[static_cast<size_t>(i)];
        if (context.hasOutput(0)) copyElement(data, first + place, context.outputs[0], result);
        if (context.hasOutput(1)) putInteger(context.outputs[1], result, place);
      }
    }
    return {};
  });
}

// Integers keep their lower bits.
Status sumUp(const OperationContext& context) {
  const Tensor& data = context.inputs[0];
  const Tensor& output = context.outputs[0];
  HEARTH_ASSIGN(const int32_t value, context.scalar<int32_t>(1));
  HEARTH_ASSIGN(const bool isExclusive, context.scalar<bool>(2));
  HEARTH_ASSIGN(const bool isReverse, context.scalar<bool>(3));
  HEARTH_ASSIGN(const size_t axis, resolveAxis(context, value, data.rank()));
  const bool areIntegers = isInteger(data.type());
  forEachRow(data.dimensions, axis, [&](int64_t first, int64_t step, int64_t size) {
    double sum = 0;
    uint64_t integers = 0;
    for (int64_t i = 0; i < size; ++i) {
      const int64_t place = first + (isReverse ? size - 1 - i : i) * step;
      const double before = sum;
      const uint64_t integersBefore = integers;
      if (areIntegers)
        integers += static_cast<uint64_t>(integerAt(data, place));
      else
        sum += realAt(data, place);
      if (areIntegers)
        putInteger(output, place, static_cast<int64_t>(isExclusive ? integersBefore : integers));
      else
        putReal(output, place, isExclusive ? before : sum);
    }
  });
  return {};
}

// Sums of the rows that have one segment number; integers keep their lower bits.
Status sumSegments(const OperationContext& context) {
  const Tensor& data = context.inputs[0];
  const Tensor& output = context.outputs[0];
  HEARTH_ASSIGN(const std::vector<int64_t> segments, context.intVector(1));
  const int64_t count = countOf(output.dimensions);
  const int64_t size = segments.empty() ? 0 : countOf(data.dimensions) / data.dimensions[0];
  std::vector<double> sums(static_cast<size_t>(count));
  std::vector<uint32_t> integers(static_cast<size_t>(count));
  const bool areIntegers = isInteger(data.type());
  for (int64_t place = 0; place < countOf(data.dimensions); ++place) {
    const auto result =
        static_cast<size_t>(segments[static_cast<size_t>(place / size)] * size + place % size);
    if (areIntegers)
      integers[result] += static_cast<uint32_t>(integerAt(data, place));
    else
      sums[result] += realAt(data, place);
  }
  for (int64_t i = 0; i < count; ++i) {
    if (areIntegers)
      putInteger(output, i, integers[static_cast<size_t>(i)]);
    else
      putReal(output, i, sums[static_cast<size_t>(i)]);
  }
  return {};
}

}  // namespace hearth::ops::reference
