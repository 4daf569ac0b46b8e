// SPDX-License-Identifier: Apache-2.0
// How the elements of a tensor become one result, by operations of which each has `start`, the
// result for no elements, `merge`, which takes two results, kIsDivisible, rows(), which folds each
// row into a result of its own, and columns(), which folds rows, element by element, into one row
// of results.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <type_traits>
#include <vector>

#include "base/vector_dispatch.h"
#include "ops/element_visitor.h"
#include "ops/float_folds.h"

namespace hearth::ops {

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
  // Vectors that every CPU has: GCC divides longer ones. With AVX2 float_folds.h has the faster
  // way.
  constexpr int64_t kLanes = 16 / sizeof(Accumulator);
  constexpr int64_t kVectors = 4;  // so that no operation waits for the one before it
  using Vector = LaneVector<kLanes, Accumulator>::Type;
  using Elements = LaneVector<kLanes, T>::Type;
  onVectorsOf<T>([=]() HEARTH_INLINE {
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

// Folds each row into a result of its own, by a Fold (see below), in many lanes, which are merged
// at the end. A row has kLanes elements or more.
template <int64_t kLanes, typename T, typename Accumulator, typename Operation>
void foldRowsInLanes(const T* source, int64_t rows, int64_t columns, Accumulator* results,
                     Operation operation) {
  constexpr int64_t kFew = kLanes / 4;
  onVectorsOf<T>([=]() HEARTH_INLINE {
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

// Folds each row into a result of its own, by a Fold.
template <typename T, typename Accumulator, typename Operation>
void foldRows(const T* source, int64_t rows, int64_t columns, Accumulator* results,
              Operation operation) {
  // Enough lanes that no operation waits for the one before it, few enough to merge quickly.
  constexpr int64_t kLanes = sizeof(T) == 1 ? 64 : 128 / sizeof(T);
  constexpr int64_t kOfShortRows = 16;
  if (columns >= kLanes) {
    if constexpr (std::is_floating_point_v<T>)
      return foldRealRows(source, rows, columns, results, operation.start, operation.merge);
    else
      return foldRowsInLanes<kLanes>(source, rows, columns, results, operation);
  }
  if constexpr (Operation::kIsIdempotent && sizeof(T) == 1)
    if (columns >= kOfShortRows)
      return foldRowsInLanes<kOfShortRows>(source, rows, columns, results, operation);
  for (int64_t row = 0; row < rows; ++row) {
    Accumulator value = results[row];
    for (int64_t i = 0; i < columns; ++i)
      value = operation.combine(value, source[row * columns + i]);
    results[row] = value;
  }
}

// Folds rows, element by element, into one row of results.
template <typename T, typename Accumulator, typename Operation>
void foldInto(const T* source, int64_t rows, int64_t columns, Accumulator* results,
              Operation operation) {
  if constexpr (requires { Operation::foldColumnsByVectors; })
    if (Operation::foldColumnsByVectors(source, rows, columns, results)) return;
  onVectorsOf<T>([=]() HEARTH_INLINE {
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

// Sums or products of float32 numbers in float64.
using FoldFloats = bool (*)(const float*, int64_t, int64_t, double*);
template <typename Merge, int kStart, FoldFloats kFoldRows, FoldFloats kFoldColumns>
struct FloatFold {
  static constexpr FoldFloats foldColumnsByVectors = kFoldColumns;
  static constexpr bool kIsDivisible = !std::is_same_v<Merge, std::multiplies<>>;
  static constexpr bool kIsIdempotent = false;
  static constexpr double start = kStart;
  static constexpr Merge merge{};
  HEARTH_INLINE static double combine(double a, float b) {
    return merge(a, static_cast<double>(b));
  }

  void rows(const float* source, int64_t rows, int64_t columns, double* results) const {
    if (!kFoldRows(source, rows, columns, results)) foldRows(source, rows, columns, results, *this);
  }
  void columns(const float* source, int64_t rows, int64_t columns, double* results) const {
    foldColumns(source, rows, columns, results, *this);
  }
};
using FloatSum = FloatFold<std::plus<>, 0, addFloatRows, addFloatColumns>;
using FloatProduct = FloatFold<std::multiplies<>, 1, multiplyFloatRows, multiplyFloatColumns>;

// The greatest or the least element.
inline constexpr auto takeGreater = [](const auto& a, const auto& b) {
  return b > a ? b : a;
};
inline constexpr auto takeLess = [](const auto& a, const auto& b) {
  return b < a ? b : a;
};
template <typename T, typename Take>
struct Extreme : Fold<T, T, Take, Take, true> {
  Extreme(T start, Take take) : Fold<T, T, Take, Take, true>{start, take, take} {}

  void rows(const T* source, int64_t rows, int64_t columns, T* results) const {
    if constexpr (std::is_same_v<T, float>) {
      constexpr bool kIsGreatest = std::is_same_v<const Take, decltype(takeGreater)>;
      if ((kIsGreatest ? raiseToFloatRows : lowerToFloatRows)(source, rows, columns, results))
        return;
    }
    foldRows(source, rows, columns, results, *this);
  }
};

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

}  // namespace hearth::ops
