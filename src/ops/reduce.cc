// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>

#include "base/vector_dispatch.h"
#include "ops/element_visitor.h"
#include "ops/folds.h"
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

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(3, 1));
  HEARTH_TRY(signature.inputType(
      0, isLogical(signature.type()) ? OperandType::kTensorBool8 : kMovableTensors));
  HEARTH_TRY(signature.inputRank(0, 0, kMaximumRank));
  HEARTH_TRY(signature.inputTensor(1, kIndexTensors, 0, 1));
  HEARTH_TRY(signature.inputType(
      2, signature.type() == OperationType::kMean ? OperandType::kInt32 : OperandType::kBool));
  HEARTH_TRY(signature.outputTypeLike(0, 0));
  return isSelecting(signature.type()) ? signature.outputQuantizationLike(0, 0) : Status();
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

// Folds every input element into the result at its output position; reads the input once, in order.
template <typename T, typename Accumulator, typename Operation>
void fold(const T* source, const std::vector<Run>& runs, Accumulator* results,
          Operation operation) {
  if (runs.empty()) return operation.rows(source, 1, 1, results);
  // One call of the operation takes the two innermost runs: rows with a result each, or rows that
  // are folded into one row of results.
  const bool isRow = runs.back().isReduced;
  const size_t outer = runs.size() < 2 ? 0 : runs.size() - 2;
  const int64_t rows = runs.size() < 2 ? 1 : runs[outer].size;
  const int64_t columns = runs.back().size;
  std::vector<int64_t> strides(runs.size(), 0);
  int64_t kept = 1;
  for (size_t i = runs.size(); i-- > 0;) {
    if (runs[i].isReduced) continue;
    strides[i] = kept;
    kept *= runs[i].size;
  }
  std::vector<int64_t> index(outer, 0);
  int64_t at = 0;
  while (true) {
    if (isRow)
      operation.rows(source, rows, columns, results + at);
    else
      operation.columns(source, rows, columns, results + at);
    source += rows * columns;
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

// The same where the first dimension is reduced. Parts of it are folded on the threads of `pool`
// and merged at the end. The parts do not depend on the number of threads, so neither do the sums.
template <typename T, typename Accumulator, typename Operation>
void foldMerged(threads::ThreadPool* pool, const T* source, const std::vector<Run>& runs,
                uint64_t inputs, uint64_t outputs, Accumulator* results, Operation operation) {
  constexpr uint64_t kPartBytes = uint64_t{1} << 20;
  constexpr uint64_t kMostParts = 16;
  const auto size = static_cast<uint64_t>(runs[0].size);
  const uint64_t bytes = size * inputs * sizeof(T);
  // Merging must be little work compared with reading.
  const uint64_t worthwhile = bytes / (4 * sizeof(Accumulator)) / outputs;
  const uint64_t parts = std::min({size, bytes / kPartBytes, kMostParts, worthwhile});
  if (parts < 2) return fold(source, runs, results, operation);
  std::vector<Accumulator> others((parts - 1) * outputs, operation.start);
  threads::forRanges(pool, parts, 1, [&](uint64_t first, uint64_t last) {
    for (uint64_t i = first; i < last; ++i) {
      const uint64_t begin = i * size / parts;
      std::vector<Run> part = runs;
      part[0].size = static_cast<int64_t>((i + 1) * size / parts - begin);
      fold(source + begin * inputs, part, i == 0 ? results : others.data() + (i - 1) * outputs,
           operation);
    }
  });
  for (size_t i = 0; i < others.size(); ++i)
    results[i % outputs] = operation.merge(results[i % outputs], others[i]);
}

// The same on the threads of `pool`: each thread takes a part of the first dimension.
template <typename T, typename Accumulator, typename Operation>
void foldParts(threads::ThreadPool* pool, const T* source, const std::vector<Run>& runs,
               Accumulator* results, Operation operation) {
  if (runs.empty()) return fold(source, runs, results, operation);
  uint64_t inputs = 1;
  uint64_t outputs = 1;
  for (size_t i = 1; i < runs.size(); ++i) {
    inputs *= static_cast<uint64_t>(runs[i].size);
    if (!runs[i].isReduced) outputs *= static_cast<uint64_t>(runs[i].size);
  }
  if (Operation::kIsDivisible && runs[0].isReduced)
    return foldMerged(pool, source, runs, inputs, outputs, results, operation);
  if (runs.size() < 2 || runs[0].isReduced) return fold(source, runs, results, operation);
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
    runInto(Fold<T, Accumulator, Combine, Merge, false>{start, combine, merge},
            context.inputs[0].as<T>(), results.data());
    return results;
  }

  // `results` hold the result for no elements.
  template <typename T, typename Accumulator, typename Operation>
  void runInto(const Operation& operation, const T* source, Accumulator* results) const {
    if (inputCount > 0) foldParts(context.threadPool, source, runs, results, operation);
  }
};

// Folds directly into the output.
template <typename T>
Status selectExtreme(const Reduction& reduction, bool wantsLargest) {
  using Limits = std::numeric_limits<std::conditional_t<std::is_same_v<T, Half>, float, T>>;
  // Infinities are the neutral elements of real numbers.
  const T smallest = static_cast<T>(Limits::has_infinity ? -Limits::infinity() : Limits::lowest());
  const T largest = static_cast<T>(Limits::has_infinity ? Limits::infinity() : Limits::max());
  const T* source = reduction.context.inputs[0].as<T>();
  T* results = reduction.context.outputs[0].as<T>();
  std::fill_n(results, reduction.outputCount, wantsLargest ? smallest : largest);
  if (wantsLargest)
    reduction.runInto(Extreme(smallest, takeGreater), source, results);
  else
    reduction.runInto(Extreme(largest, takeLess), source, results);
  return {};
}

template <typename Operation>
std::vector<double> foldFloats(const Reduction& reduction, const Operation& operation) {
  std::vector<double> results(reduction.outputCount, operation.start);
  reduction.runInto(operation, reduction.context.inputs[0].as<float>(), results.data());
  return results;
}

// The sums or products in float64.
template <typename T>
std::vector<double> foldReal(const Reduction& reduction, bool isProduct) {
  if constexpr (std::is_same_v<T, float>)
    return isProduct ? foldFloats(reduction, FloatProduct()) : foldFloats(reduction, FloatSum());
  if (isProduct)
    return reduction.run<T>(
        1.0, [](double a, T b) { return a * static_cast<double>(b); }, std::multiplies<>());
  return reduction.run<T>(
      0.0, [](double a, T b) { return a + static_cast<double>(b); }, std::plus<>());
}

template <typename T>
Status reduceReal(const Reduction& reduction, OperationType type) {
  const std::vector<double> results = foldReal<T>(reduction, type == OperationType::kReduceProd);
  const double divisor =
      type == OperationType::kMean
          ? static_cast<double>(reduction.inputCount) / static_cast<double>(reduction.outputCount)
          : 1.0;
  T* target = reduction.context.outputs[0].as<T>();
  for (size_t i = 0; i < results.size(); ++i) target[i] = static_cast<T>(results[i] / divisor);
  return {};
}

// Products wrap, so those of signed numbers have the bits of those of unsigned ones.
template <typename T>
Status multiplyIntegers(const Reduction& reduction) {
  static_assert(std::is_unsigned_v<T>);
  const std::vector<uint64_t> results = reduction.run<T>(
      uint64_t{1}, [](uint64_t a, T b) { return a * static_cast<uint64_t>(b); },
      std::multiplies<uint64_t>());
  T* target = reduction.context.outputs[0].as<T>();
  for (size_t i = 0; i < results.size(); ++i) target[i] = static_cast<T>(results[i]);
  return {};
}

// Sums and products of integers wrap, means are cut towards zero, as in TFLite.
template <typename T>
Status reduceInteger(const Reduction& reduction, OperationType type) {
  if (type == OperationType::kReduceProd)
    return multiplyIntegers<std::make_unsigned_t<T>>(reduction);
  // Sums of 64 bits wrap as well.
  using Element = std::conditional_t<sizeof(T) == sizeof(uint64_t), uint64_t, T>;
  const std::vector<uint64_t> results = reduction.run<Element>(
      uint64_t{0}, [](uint64_t a, Element b) { return a + static_cast<uint64_t>(b); },
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
        1.0, [=](double a, T b) { return a * (scale * (b - zeroPoint)); }, std::multiplies<>());
    for (size_t i = 0; i < results.size(); ++i)
      target[i] = static_cast<T>(quantize(results[i], to));
    return {};
  }
  std::vector<int64_t> results(reduction.outputCount);
  if constexpr (sizeof(T) == 1)
    reduction.runInto(ByteSum<T>(), reduction.context.inputs[0].as<T>(), results.data());
  else
    results =
        reduction.run<T>(int64_t{0}, [](int64_t a, T b) { return a + b; }, std::plus<int64_t>());
  // Number of elements that one result is made of.
  const uint64_t count = reduction.inputCount / reduction.outputCount;
  const int64_t zero = zeroPoint * static_cast<int64_t>(count);
  const uint64_t divisor = type == OperationType::kMean && count > 0 ? count : 1;
  const double scale = static_cast<double>(from.scale) / static_cast<double>(divisor);
  const double toScale = to.scale;
  const double toZero = to.zeroPoint;
  const double lowest = std::numeric_limits<T>::lowest();
  const double highest = std::numeric_limits<T>::max();
  const int64_t* sums = results.data();
  const size_t size = results.size();
  // quantize() without calls and branches.
  base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
    for (size_t i = 0; i < size; ++i) {
      const double value = scale * static_cast<double>(sums[i] - zero) / toScale;
      const double whole = std::trunc(value);
      const double rest = value - whole;
      double shifted = whole + (rest >= 0.5 ? 1.0 : 0.0) - (rest <= -0.5 ? 1.0 : 0.0) + toZero;
      shifted = shifted == shifted ? shifted : toZero;
      shifted = shifted < lowest ? lowest : shifted;
      shifted = shifted > highest ? highest : shifted;
      target[i] = static_cast<T>(static_cast<int32_t>(shifted));
    }
  });
  return {};
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const ReduceParameters parameters, parseReduce(context));
  const OperationType type = context.operation->type;
  const Tensor& input = context.inputs[0];
  const Reduction reduction = {context, mergedRuns(input.dimensions, parameters.isReduced),
                               input.elementCount(), context.outputs[0].elementCount()};
  if (reduction.outputCount == 0) return {};
  if (isLogical(type)) {
    const bool wantsAll = type == OperationType::kReduceAll;
    uint8_t* target = context.outputs[0].as<uint8_t>();
    std::fill_n(target, reduction.outputCount, wantsAll ? 1 : 0);
    if (wantsAll)
      reduction.runInto(AllBytes(), input.as<uint8_t>(), target);
    else
      reduction.runInto(AnyByte(), input.as<uint8_t>(), target);
    return {};
  }
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

namespace {

constexpr OperationDefinition definition(OperationType type) {
  return {type, validate, prepareParsedShape<parseReduce>, execute};
}

}  // namespace

const OperationDefinition kMeanOperation = definition(OperationType::kMean);
const OperationDefinition kReduceAllOperation = definition(OperationType::kReduceAll);
const OperationDefinition kReduceAnyOperation = definition(OperationType::kReduceAny);
const OperationDefinition kReduceMaxOperation = definition(OperationType::kReduceMax);
const OperationDefinition kReduceMinOperation = definition(OperationType::kReduceMin);
const OperationDefinition kReduceProdOperation = definition(OperationType::kReduceProd);
const OperationDefinition kReduceSumOperation = definition(OperationType::kReduceSum);

}  // namespace hearth::ops
