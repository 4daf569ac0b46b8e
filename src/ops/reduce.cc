// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>

#include "base/vector_dispatch.h"
#include "ops/element_visitor.h"
#include "ops/float_sums.h"
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

// Merges the results of all lanes. For integers the compiler finds the fast order; for other types
// it may not change the order, so the order is given here.
template <int64_t kLanes, typename Accumulator, typename Operation>
HEARTH_INLINE inline Accumulator mergeLanes(Accumulator* values, const Operation& operation) {
  if constexpr (std::is_integral_v<Accumulator>) {
    Accumulator value = operation.start;
    for (int64_t lane = 0; lane < kLanes; ++lane) value = operation.merge(value, values[lane]);
    return value;
  } else if constexpr (kLanes == 1) {
    return values[0];
  } else {
    for (int64_t lane = 0; lane < kLanes / 2; ++lane)
      values[lane] = operation.merge(values[lane], values[lane + kLanes / 2]);
    return mergeLanes<kLanes / 2>(values, operation);
  }
}

// Merges the results in the lanes of a vector, the halves of it first.
template <int64_t kLanes, typename Accumulator>
struct LaneVector {
  typedef Accumulator Type __attribute__((vector_size(kLanes * sizeof(Accumulator))));
};
template <int64_t kLanes, typename Accumulator, typename Merge>
HEARTH_INLINE inline Accumulator mergeVector(
    const typename LaneVector<kLanes, Accumulator>::Type& values, const Merge& merge) {
  if constexpr (kLanes == 2) {
    return merge(values[0], values[1]);
  } else {
    typename LaneVector<kLanes / 2, Accumulator>::Type halves[2];
    static_assert(sizeof(halves) == sizeof(values));
    std::memcpy(&halves, &values, sizeof(values));
    halves[0] = merge(halves[0], halves[1]);
    return mergeVector<kLanes / 2, Accumulator>(halves[0], merge);
  }
}

// Folds each row of real numbers into a result of its own. `merge` takes numbers and vectors.
template <typename T, typename Accumulator, typename Merge>
void foldRealRows(const T* source, int64_t rows, int64_t columns, Accumulator* results,
                  Accumulator start, const Merge& merge) {
  // Where the CPU lacks such vectors compilers compute them one number at a time, so they are no
  // longer than those of AVX2.
  constexpr int64_t kLanes = 32 / sizeof(Accumulator);
  constexpr int64_t kVectors = 4;  // so that no operation waits for the one before it
  using Vector = LaneVector<kLanes, Accumulator>::Type;
  using Elements = LaneVector<kLanes, T>::Type;
  base::onWidestVectors([=]() HEARTH_INLINE {
    for (int64_t row = 0; row < rows; ++row) {
      const T* const first = source + row * columns;
      Vector values[kVectors];
      for (Vector& value : values) value = Vector{} + start;
      const auto add = [&](int64_t at, Vector* value) HEARTH_INLINE {
        Elements elements;
        std::memcpy(&elements, first + at, sizeof(elements));
        *value = merge(*value, __builtin_convertvector(elements, Vector));
      };
      int64_t at = 0;
      for (; at + kVectors * kLanes <= columns; at += kVectors * kLanes)
        for (int64_t v = 0; v < kVectors; ++v) add(at + v * kLanes, &values[v]);
      for (; at + kLanes <= columns; at += kLanes) add(at, &values[0]);
      values[0] = merge(merge(values[0], values[1]), merge(values[2], values[3]));
      Accumulator result = merge(results[row], mergeVector<kLanes, Accumulator>(values[0], merge));
      for (; at < columns; ++at) result = merge(result, static_cast<Accumulator>(first[at]));
      results[row] = result;
    }
  });
}

// Folds each row into a result of its own, by a Fold (see below). Long rows are folded in many
// lanes, which are merged at the end.
template <typename T, typename Accumulator, typename Operation>
void foldRows(const T* source, int64_t rows, int64_t columns, Accumulator* results,
              Operation operation) {
  // Enough lanes that no operation waits for the one before it, few enough to merge quickly.
  constexpr int64_t kLanes = sizeof(T) == 1 ? 64 : 128 / sizeof(T);
  constexpr int64_t kFew = kLanes / 4;
  if (columns < kLanes) {
    for (int64_t row = 0; row < rows; ++row) {
      Accumulator value = results[row];
      for (int64_t i = 0; i < columns; ++i)
        value = operation.combine(value, source[row * columns + i]);
      results[row] = value;
    }
    return;
  }
  if constexpr (std::is_floating_point_v<T>)
    return foldRealRows(source, rows, columns, results, operation.start, operation.merge);
  base::onWidestVectors([=]() HEARTH_INLINE {
    for (int64_t row = 0; row < rows; ++row) {
      const T* first = source + row * columns;
      alignas(64) Accumulator values[kLanes];
      for (int64_t lane = 0; lane < kLanes; ++lane) values[lane] = operation.start;
      int64_t at = 0;
      for (; at + kLanes <= columns; at += kLanes)
        for (int64_t lane = 0; lane < kLanes; ++lane)
          values[lane] = operation.combine(values[lane], first[at + lane]);
      if constexpr (Operation::kIsIdempotent) {
        for (int64_t lane = 0; lane < kLanes; ++lane)
          values[lane] = operation.combine(values[lane], first[columns - kLanes + lane]);
        at = columns;
      }
      for (; at + kFew <= columns; at += kFew)
        for (int64_t lane = 0; lane < kFew; ++lane)
          values[lane] = operation.combine(values[lane], first[at + lane]);
      Accumulator value = operation.merge(results[row], mergeLanes<kLanes>(values, operation));
      for (; at < columns; ++at) value = operation.combine(value, first[at]);
      results[row] = value;
    }
  });
}

// Sums of float32 numbers in float64.
struct FloatSum {
  static constexpr bool kIsDivisible = true;
  static constexpr bool kIsIdempotent = false;
  static constexpr double start = 0;
  static constexpr std::plus<> merge{};
  HEARTH_INLINE static double combine(double a, float b) { return a + static_cast<double>(b); }

  void rows(const float* source, int64_t rows, int64_t columns, double* results) const;
  void columns(const float* source, int64_t rows, int64_t columns, double* results) const;
};

// Folds rows, element by element, into one row of results.
template <typename T, typename Accumulator, typename Operation>
void foldInto(const T* source, int64_t rows, int64_t columns, Accumulator* results,
              Operation operation) {
  if constexpr (std::is_same_v<Operation, FloatSum>)
    if (addFloatColumns(source, rows, columns, results)) return;
  base::onWidestVectors([=]() HEARTH_INLINE {
    int64_t row = 0;
    // Four rows at a time, so that results are read and written less often.
    for (; row + 4 <= rows; row += 4) {
      const T* first = source + row * columns;
#pragma GCC ivdep
      for (int64_t i = 0; i < columns; ++i) {
        Accumulator value = operation.combine(results[i], first[i]);
        value = operation.combine(value, first[columns + i]);
        value = operation.combine(value, first[2 * columns + i]);
        results[i] = operation.combine(value, first[3 * columns + i]);
      }
    }
    for (; row < rows; ++row) {
#pragma GCC ivdep
      for (int64_t i = 0; i < columns; ++i)
        results[i] = operation.combine(results[i], source[row * columns + i]);
    }
  });
}

// The same, but treats several narrow rows as one that is wide enough for vectors.
template <typename T, typename Accumulator, typename Operation>
void foldColumns(const T* source, int64_t rows, int64_t columns, Accumulator* results,
                 Operation operation) {
  constexpr int64_t kWide = 512;
  const int64_t together = kWide / columns;
  if (together < 2 || rows < 4 * together)
    return foldInto(source, rows, columns, results, operation);
  std::vector<Accumulator> parts(static_cast<size_t>(together * columns), operation.start);
  const int64_t whole = rows / together;
  foldInto(source, whole, together * columns, parts.data(), operation);
  for (int64_t part = 0; part < together; ++part)
    for (int64_t i = 0; i < columns; ++i)
      results[i] = operation.merge(results[i], parts[static_cast<size_t>(part * columns + i)]);
  foldInto(source + whole * together * columns, rows % together, columns, results, operation);
}

void FloatSum::rows(const float* source, int64_t rows, int64_t columns, double* results) const {
  if (!addFloatRows(source, rows, columns, results))
    foldRows(source, rows, columns, results, *this);
}

void FloatSum::columns(const float* source, int64_t rows, int64_t columns, double* results) const {
  foldColumns(source, rows, columns, results, *this);
}

// How elements become a result: `combine` adds an element, `merge` another result.
template <typename T, typename Accumulator, typename Combine, typename Merge, bool isIdempotent>
struct Fold {
  static constexpr bool kIsIdempotent = isIdempotent;  // an element may be combined twice
  // A product of many real numbers becomes subnormal on its way to zero, and subnormal numbers are
  // slow. If the product were divided into parts, each part would.
  static constexpr bool kIsDivisible = !std::is_same_v<Merge, std::multiplies<>>;

  Accumulator start;  // result for no elements
  Combine combine;
  Merge merge;

  // Folds each row into a result of its own.
  void rows(const T* source, int64_t rows, int64_t columns, Accumulator* results) const {
    foldRows(source, rows, columns, results, *this);
  }
  // Folds rows, element by element, into one row of results.
  void columns(const T* source, int64_t rows, int64_t columns, Accumulator* results) const {
    foldColumns(source, rows, columns, results, *this);
  }
};

// Each such operation has `start`, `merge`, kIsDivisible, rows() and columns().

// Sums of 8-bit numbers; columns() adds up to kMostNarrow rows in 16 bits first.
template <typename T>
struct ByteSum {
  using Narrow = std::conditional_t<std::is_signed_v<T>, int16_t, uint16_t>;
  static constexpr int64_t kMostNarrow = 256;  // sums of that many numbers fit in 16 bits
  static constexpr bool kIsDivisible = true;
  static constexpr int64_t start = 0;
  static int64_t merge(int64_t a, int64_t b) { return a + b; }

  struct NarrowSum {
    HEARTH_INLINE static Narrow combine(Narrow a, T b) { return static_cast<Narrow>(a + b); }
  };

  // Uses the instruction that sums distances: each element's distance from 0. The compiler must not
  // know that it is 0, else it would not use the instruction.
  void rows(const T* source, int64_t rows, int64_t columns, int64_t* results) const {
    constexpr uint8_t kFlip = std::is_signed_v<T> ? 0x80 : 0;  // makes signed numbers unsigned
    constexpr int64_t kBlock = 1 << 20;                        // sums fit in 32 bits
    const auto zero = static_cast<uint8_t>(columns < 0 ? 1 : 0);
    base::onWidestVectors([=]() HEARTH_INLINE {
      for (int64_t row = 0; row < rows; ++row) {
        const T* first = source + row * columns;
        // The processor does not predict the end of a row; prefetching uses the time.
        for (int64_t i = 0; i < columns; i += 64) __builtin_prefetch(first + 2 * columns + i);
        int64_t sum = -int64_t{kFlip} * columns;
        for (int64_t begin = 0; begin < columns; begin += kBlock) {
          const int64_t end = std::min(columns, begin + kBlock);
          int32_t part = 0;
          for (int64_t i = begin; i < end; ++i)
            part += std::abs(static_cast<uint8_t>(first[i] ^ kFlip) - zero);
          sum += part;
        }
        results[row] += sum;
      }
    });
  }

  void columns(const T* source, int64_t rows, int64_t columns, int64_t* results) const {
    constexpr int64_t kWide = 512;
    const int64_t together = std::clamp<int64_t>(kWide / columns, 1, rows);
    const int64_t width = together * columns;
    std::vector<Narrow> values(static_cast<size_t>(width));
    while (rows > 0) {
      const int64_t taken = std::min(kMostNarrow, rows / together);
      const int64_t parts = taken == 0 ? 1 : together;
      std::ranges::fill(values, Narrow{0});
      foldInto(source, std::max<int64_t>(taken, 1), parts * columns, values.data(), NarrowSum());
      for (int64_t part = 0; part < parts; ++part)
        for (int64_t i = 0; i < columns; ++i)
          results[i] += values[static_cast<size_t>(part * columns + i)];
      const int64_t done = std::max<int64_t>(taken, 1) * parts;
      source += done * columns;
      rows -= done;
    }
  }
};

// Whether any byte of a row is set, or all are. The search in a row ends at the first byte that
// decides.
struct AnyByte {
  static constexpr bool kIsDivisible = true;
  static constexpr uint8_t start = 0;
  static uint8_t merge(uint8_t a, uint8_t b) { return a | b; }
  void rows(const uint8_t* source, int64_t rows, int64_t columns, uint8_t* results) const {
    const auto rest = static_cast<size_t>(columns - 1);
    for (int64_t row = 0; row < rows; ++row, source += columns) {
      // No byte is set if the first is not and each equals the one before it.
      if (results[row] == 0)
        results[row] = source[0] != 0 || std::memcmp(source, source + 1, rest) != 0;
    }
  }
  void columns(const uint8_t* source, int64_t rows, int64_t columns, uint8_t* results) const {
    foldInto(source, rows, columns, results, *this);
  }
  HEARTH_INLINE static uint8_t combine(uint8_t a, uint8_t b) {
    return static_cast<uint8_t>(a | (b != 0 ? 1 : 0));
  }
};
struct AllBytes {
  static constexpr bool kIsDivisible = true;
  static constexpr uint8_t start = 1;
  static uint8_t merge(uint8_t a, uint8_t b) { return a & b; }
  void rows(const uint8_t* source, int64_t rows, int64_t columns, uint8_t* results) const {
    for (int64_t row = 0; row < rows; ++row, source += columns) {
      if (results[row] != 0)
        results[row] = std::memchr(source, 0, static_cast<size_t>(columns)) == nullptr;
    }
  }
  void columns(const uint8_t* source, int64_t rows, int64_t columns, uint8_t* results) const {
    foldInto(source, rows, columns, results, *this);
  }
  HEARTH_INLINE static uint8_t combine(uint8_t a, uint8_t b) {
    return static_cast<uint8_t>(a & (b != 0 ? 1 : 0));
  }
};

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

  // Folds directly into the output, for operations that choose one of the elements.
  template <typename T, typename Combine>
  Status runInPlace(T start, Combine combine) const {
    T* results = context.outputs[0].as<T>();
    std::fill_n(results, outputCount, start);
    runInto(Fold<T, T, Combine, Combine, true>{start, combine, combine}, context.inputs[0].as<T>(),
            results);
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
    return reduction.runInPlace<T>(smallest,
                                   [](const auto& a, const auto& b) { return b > a ? b : a; });
  return reduction.runInPlace<T>(largest,
                                 [](const auto& a, const auto& b) { return b < a ? b : a; });
}

template <typename T>
std::vector<double> sumReal(const Reduction& reduction) {
  if constexpr (std::is_same_v<T, float>) {
    std::vector<double> sums(reduction.outputCount);
    reduction.runInto(FloatSum(), reduction.context.inputs[0].as<float>(), sums.data());
    return sums;
  } else {
    return reduction.run<T>(
        0.0, [](double a, T b) { return a + static_cast<double>(b); }, std::plus<>());
  }
}

template <typename T>
Status reduceReal(const Reduction& reduction, OperationType type) {
  const bool isProduct = type == OperationType::kReduceProd;
  const std::vector<double> results =
      isProduct
          ? reduction.run<T>(
                1.0, [](double a, T b) { return a * static_cast<double>(b); }, std::multiplies<>())
          : sumReal<T>(reduction);
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
