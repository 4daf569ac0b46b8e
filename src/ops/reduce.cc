// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <type_traits>

#include "base/vector_dispatch.h"
#include "ops/element_visitor.h"
#include "ops/output_shape.h"
#include "ops/quantization.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

bool isLogical(OperationType type) {
  return type == OperationType::kReduceAll || type == OperationType::kReduceAny;
}
bool isSelecting(OperationType type) {
  return type == OperationType::kReduceMax || type == OperationType::kReduceMin;
}

Status validate(const graph::Model&, const graph::Subgraph& subgraph,
                const graph::Operation& operation) {
  const Signature signature(subgraph, operation);
  HEARTH_TRY(signature.counts(3, 1));
  HEARTH_TRY(signature.inputType(
      0, isLogical(operation.type) ? OperandType::kTensorBool8 : kMovableTensors));
  HEARTH_TRY(signature.inputRank(0, 0, kMaximumRank));
  HEARTH_TRY(signature.inputType(1, kIndexTensors));
  HEARTH_TRY(signature.inputRank(1, 0, 1));
  HEARTH_TRY(signature.inputType(
      2, operation.type == OperationType::kMean ? OperandType::kInt32 : OperandType::kBool));
  HEARTH_TRY(signature.outputTypeLike(0, 0));
  return isSelecting(operation.type) ? signature.outputQuantizationLike(0, 0) : Status();
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(ReduceParameters parameters, parseReduce(context));
  return context.setOutputDimensions(0, std::move(parameters.dimensions));
}

// Neighbouring dimensions of one kind count as one; dimensions of 1 do not count.
struct Run {
  int64_t size;
  bool isReduced;
};

std::vector<Run> mergedRuns(const Dimensions& dimensions, const std::vector<bool>& isReduced) {
  std::vector<Run> runs;
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (dimensions[i] == 1) continue;
    if (!runs.empty() && runs.back().isReduced == isReduced[i])
      runs.back().size *= dimensions[i];
    else
      runs.push_back({dimensions[i], isReduced[i]});
  }
  return runs;
}

// How elements become a result: `combine` adds one, `merge` the result of others.
template <typename Accumulator, typename Combine, typename Merge>
struct Fold {
  Accumulator start;  // of no elements
  Combine combine;
  Merge merge;
};

// A row into one result; many at once, which are merged at last, where the row is long.
template <typename T, typename Accumulator, typename Operation>
void foldRow(const T* source, int64_t size, Accumulator* result, Operation operation) {
  constexpr int64_t kLanes = 64 / sizeof(T) < 16 ? 16 : 64 / sizeof(T);
  int64_t i = 0;
  if (size >= 4 * kLanes) {
    Accumulator lanes[kLanes];
    std::fill_n(lanes, kLanes, operation.start);
    const int64_t end = size / kLanes * kLanes;
    Accumulator* sums = lanes;
    base::onWidestVectors([=]() HEARTH_INLINE {
      Accumulator values[kLanes];
      for (int64_t lane = 0; lane < kLanes; ++lane) values[lane] = sums[lane];
      for (int64_t at = 0; at < end; at += kLanes)
        for (int64_t lane = 0; lane < kLanes; ++lane)
          values[lane] = operation.combine(values[lane], source[at + lane]);
      for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] = values[lane];
    });
    for (const Accumulator& lane : lanes) *result = operation.merge(*result, lane);
    i = end;
  }
  Accumulator value = *result;
  for (; i < size; ++i) value = operation.combine(value, source[i]);
  *result = value;
}

// Each element of a row into a result of its own.
template <typename T, typename Accumulator, typename Operation>
void foldInto(const T* source, int64_t size, Accumulator* results, Operation operation) {
  base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
    for (int64_t i = 0; i < size; ++i) results[i] = operation.combine(results[i], source[i]);
  });
}

// Rows one below the other into one row of results, some columns at a time, whose results stay in
// registers meanwhile.
template <typename T, typename Accumulator, typename Operation>
void foldColumns(const T* source, int64_t rows, int64_t columns, Accumulator* results,
                 Operation operation) {
  base::onWidestVectors([=]() HEARTH_INLINE {
    constexpr int64_t kColumns = sizeof(Accumulator) < 4 ? 32 : 16;
    // So many rows stay in the cache for the other columns.
    constexpr int64_t kRows = 128;
    for (int64_t begin = 0; begin < rows; begin += kRows) {
      const int64_t end = std::min(rows, begin + kRows);
      int64_t first = 0;
      for (; first + kColumns <= columns; first += kColumns) {
        Accumulator values[kColumns];
        for (int64_t i = 0; i < kColumns; ++i) values[i] = results[first + i];
        for (int64_t row = begin; row < end; ++row)
          for (int64_t i = 0; i < kColumns; ++i)
            values[i] = operation.combine(values[i], source[row * columns + first + i]);
        for (int64_t i = 0; i < kColumns; ++i) results[first + i] = values[i];
      }
      for (; first < columns; ++first) {
        Accumulator value = results[first];
        for (int64_t row = begin; row < end; ++row)
          value = operation.combine(value, source[row * columns + first]);
        results[first] = value;
      }
    }
  });
}

// Folds every input element into its output position; the input is read once, front to back.
template <typename T, typename Accumulator, typename Operation>
void fold(const T* source, const std::vector<Run>& runs, Accumulator* results,
          Operation operation) {
  if (runs.empty()) {
    results[0] = operation.combine(results[0], source[0]);
    return;
  }
  // Rows that are not worth a call for each.
  constexpr int64_t kNarrow = 256;
  if (runs.size() == 2 && runs[0].isReduced && runs[1].size <= kNarrow)
    return foldColumns(source, runs[0].size, runs[1].size, results, operation);
  const Run inner = runs.back();
  std::vector<int64_t> strides(runs.size(), 0);
  int64_t kept = 1;
  for (size_t i = runs.size(); i-- > 0;) {
    if (runs[i].isReduced) continue;
    strides[i] = kept;
    kept *= runs[i].size;
  }
  const size_t outer = runs.size() - 1;
  std::vector<int64_t> index(outer, 0);
  int64_t at = 0;
  while (true) {
    Accumulator* result = results + at;
    if (inner.isReduced)
      foldRow(source, inner.size, result, operation);
    else
      foldInto(source, inner.size, result, operation);
    source += inner.size;
    size_t d = outer;
    for (; d > 0; --d) {
      at += strides[d - 1];
      if (++index[d - 1] < runs[d - 1].size) break;
      at -= strides[d - 1] * runs[d - 1].size;
      index[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

// The same on the threads of `pool` where the first dimension is kept: each takes a part of it.
template <typename T, typename Accumulator, typename Operation>
void foldParts(threads::ThreadPool* pool, const T* source, const std::vector<Run>& runs,
               Accumulator* results, Operation operation) {
  if (runs.size() < 2 || runs[0].isReduced) return fold(source, runs, results, operation);
  uint64_t inputs = 1;
  uint64_t outputs = 1;
  for (size_t i = 1; i < runs.size(); ++i) {
    inputs *= static_cast<uint64_t>(runs[i].size);
    if (!runs[i].isReduced) outputs *= static_cast<uint64_t>(runs[i].size);
  }
  threads::forRanges(pool, static_cast<uint64_t>(runs[0].size),
                     threads::grainOf(inputs * sizeof(T)), [&](uint64_t begin, uint64_t end) {
                       std::vector<Run> part = runs;
                       part[0].size = static_cast<int64_t>(end - begin);
                       fold(source + begin * inputs, part, results + begin * outputs, operation);
                     });
}

struct Reduction {
  const OperationContext& context;
  std::vector<Run> runs;
  uint64_t inputCount;
  uint64_t outputCount;

  template <typename T, typename Accumulator, typename Combine, typename Merge>
  std::vector<Accumulator> run(Accumulator start, Combine combine, Merge merge) const {
    std::vector<Accumulator> results(outputCount, start);
    const Fold<Accumulator, Combine, Merge> operation = {start, combine, merge};
    if (inputCount > 0)
      foldParts(context.threadPool, context.inputs[0].as<T>(), runs, results.data(), operation);
    return results;
  }

  // Straight into the output, for accumulators of the element's own type.
  template <typename T, typename Combine>
  Status runInPlace(T start, Combine combine) const {
    T* results = context.outputs[0].as<T>();
    std::fill_n(results, outputCount, start);
    const Fold<T, Combine, Combine> operation = {start, combine, combine};
    if (inputCount > 0)
      foldParts(context.threadPool, context.inputs[0].as<T>(), runs, results, operation);
    return {};
  }
};

template <typename T>
Status selectExtreme(const Reduction& reduction, bool wantsLargest) {
  using Limits = std::numeric_limits<std::conditional_t<std::is_same_v<T, Half>, float, T>>;
  // Infinities are the neutral elements of real numbers.
  const T smallest = static_cast<T>(Limits::has_infinity ? -Limits::infinity() : Limits::lowest());
  const T largest = static_cast<T>(Limits::has_infinity ? Limits::infinity() : Limits::max());
  if (wantsLargest)
    return reduction.runInPlace<T>(smallest, [](T a, T b) { return b > a ? b : a; });
  return reduction.runInPlace<T>(largest, [](T a, T b) { return b < a ? b : a; });
}

template <typename T>
Status reduceReal(const Reduction& reduction, OperationType type) {
  const bool isProduct = type == OperationType::kReduceProd;
  const std::vector<double> results =
      isProduct
          ? reduction.run<T>(
                1.0, [](double a, T b) { return a * static_cast<double>(b); },
                std::multiplies<double>())
          : reduction.run<T>(
                0.0, [](double a, T b) { return a + static_cast<double>(b); }, std::plus<double>());
  const double divisor =
      type == OperationType::kMean
          ? static_cast<double>(reduction.inputCount) / static_cast<double>(reduction.outputCount)
          : 1.0;
  T* target = reduction.context.outputs[0].as<T>();
  for (size_t i = 0; i < results.size(); ++i) target[i] = static_cast<T>(results[i] / divisor);
  return {};
}

// Sums and products of integers wrap, means are cut towards zero, as in TFLite.
template <typename T>
Status reduceInteger(const Reduction& reduction, OperationType type) {
  const bool isProduct = type == OperationType::kReduceProd;
  const std::vector<uint64_t> results =
      isProduct ? reduction.run<T>(
                      uint64_t{1}, [](uint64_t a, T b) { return a * static_cast<uint64_t>(b); },
                      std::multiplies<uint64_t>())
                : reduction.run<T>(
                      uint64_t{0}, [](uint64_t a, T b) { return a + static_cast<uint64_t>(b); },
                      std::plus<uint64_t>());
  const uint64_t count =
      reduction.outputCount == 0 ? 0 : reduction.inputCount / reduction.outputCount;
  T* target = reduction.context.outputs[0].as<T>();
  for (size_t i = 0; i < results.size(); ++i) {
    if (type != OperationType::kMean)
      target[i] = static_cast<T>(results[i]);
    else if (count == 0)
      target[i] = 0;
    else if constexpr (std::is_signed_v<T>)
      target[i] = static_cast<T>(static_cast<int64_t>(results[i]) / static_cast<int64_t>(count));
    else
      target[i] = static_cast<T>(results[i] / count);
  }
  return {};
}

template <typename T>
Status reduceQuantized(const Reduction& reduction, OperationType type) {
  const graph::Operand& from = *reduction.context.inputs[0].operand;
  const graph::Operand& to = *reduction.context.outputs[0].operand;
  T* target = reduction.context.outputs[0].as<T>();
  const int32_t zeroPoint = from.zeroPoint;
  if (type == OperationType::kReduceProd) {
    const double scale = from.scale;
    const std::vector<double> results = reduction.run<T>(
        1.0, [=](double a, T b) { return a * (scale * (b - zeroPoint)); },
        std::multiplies<double>());
    for (size_t i = 0; i < results.size(); ++i)
      target[i] = static_cast<T>(quantize(results[i], to));
    return {};
  }
  const std::vector<int64_t> results = reduction.run<T>(
      int64_t{0}, [=](int64_t a, T b) { return a + (static_cast<int32_t>(b) - zeroPoint); },
      std::plus<int64_t>());
  // How many elements one result is the mean of.
  const uint64_t count = type == OperationType::kMean && reduction.inputCount > 0
                             ? reduction.inputCount / reduction.outputCount
                             : 1;
  const double scale = static_cast<double>(from.scale) / static_cast<double>(count);
  for (size_t i = 0; i < results.size(); ++i)
    target[i] = static_cast<T>(quantize(scale * static_cast<double>(results[i]), to));
  return {};
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const ReduceParameters parameters, parseReduce(context));
  const OperationType type = context.operation->type;
  const Tensor& input = context.inputs[0];
  const Reduction reduction = {context, mergedRuns(input.dimensions, parameters.isReduced),
                               input.elementCount(), context.outputs[0].elementCount()};
  if (reduction.outputCount == 0) return {};
  if (type == OperationType::kReduceAll)
    return reduction.runInPlace<uint8_t>(
        1, [](uint8_t a, uint8_t b) -> uint8_t { return (a != 0) & (b != 0); });
  if (type == OperationType::kReduceAny)
    return reduction.runInPlace<uint8_t>(
        0, [](uint8_t a, uint8_t b) -> uint8_t { return (a | b) != 0; });
  return visitElementType(input.type(), [&]<typename T>(std::type_identity<T>) -> Status {
    if (isSelecting(type)) return selectExtreme<T>(reduction, type == OperationType::kReduceMax);
    if constexpr (!std::is_integral_v<T>) {
      return reduceReal<T>(reduction, type);
    } else if constexpr (sizeof(T) <= 2) {
      if (input.operand->scale > 0.0f) return reduceQuantized<T>(reduction, type);
      return reduceInteger<T>(reduction, type);
    } else {
      return reduceInteger<T>(reduction, type);
    }
  });
}

}  // namespace

Result<ReduceParameters> parseReduce(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 3, 1));
  const Dimensions& input = context.inputs[0].dimensions;
  ReduceParameters parameters;
  if (context.operation->type == OperationType::kMean) {
    HEARTH_ASSIGN(const int32_t keep, context.scalar<int32_t>(2));
    parameters.keepDimensions = keep > 0;
  } else {
    HEARTH_ASSIGN(parameters.keepDimensions, context.scalar<bool>(2));
  }
  HEARTH_ASSIGN(const std::vector<int64_t> axes, context.intVector(1));
  parameters.isReduced.resize(input.size(), false);
  for (const int64_t value : axes) {
    HEARTH_ASSIGN(const size_t axis, resolveAxis(context, value, input.size()));
    parameters.isReduced[axis] = true;
  }
  for (size_t i = 0; i < input.size(); ++i) {
    if (!parameters.isReduced[i])
      parameters.dimensions.push_back(input[i]);
    else if (parameters.keepDimensions)
      parameters.dimensions.push_back(1);
  }
  parameters.dimensions = keepRankAboveZero(context, std::move(parameters.dimensions));
  return parameters;
}

const OperationDefinition kMeanOperation = {OperationType::kMean, validate, prepare, execute};
const OperationDefinition kReduceAllOperation = {OperationType::kReduceAll, validate, prepare,
                                                 execute};
const OperationDefinition kReduceAnyOperation = {OperationType::kReduceAny, validate, prepare,
                                                 execute};
const OperationDefinition kReduceMaxOperation = {OperationType::kReduceMax, validate, prepare,
                                                 execute};
const OperationDefinition kReduceMinOperation = {OperationType::kReduceMin, validate, prepare,
                                                 execute};
const OperationDefinition kReduceProdOperation = {OperationType::kReduceProd, validate, prepare,
                                                  execute};
const OperationDefinition kReduceSumOperation = {OperationType::kReduceSum, validate, prepare,
                                                 execute};

}  // namespace hearth::ops
