// SPDX-License-Identifier: Apache-2.0
// Element-wise loops over broadcast tensors: the inner loop runs over neighbours of the output, so
// that compilers can vectorise it, and large outputs are divided among threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/vector_dispatch.h"
#include "ops/operation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {

// A run of neighbours in the output: element i of input n is at[n] + i * step[n]; steps are 0 or 1.
template <size_t kInputs>
struct BroadcastRow {
  size_t first = 0;  // in the output
  size_t count = 0;
  std::array<size_t, kInputs> at{};
  std::array<size_t, kInputs> step{};
};

// Calls visit(BroadcastRow) until all elements of `output`, the broadcast of all `inputs`, were
// visited once; on the threads of `pool`, if there is one. All indices are flat.
template <size_t kInputs, typename Visit>
void forEachBroadcastRow(threads::ThreadPool* pool, const Dimensions& output,
                         const std::array<const Dimensions*, kInputs>& inputs, const Visit& visit) {
  struct Loop {
    size_t size = 1;
    std::array<size_t, kInputs> strides{};
  };
  // Goes from the last dimension to the first and merges those that all inputs traverse evenly.
  std::vector<Loop> loops;
  std::array<size_t, kInputs> strides;
  strides.fill(1);
  for (size_t d = 0; d < output.size(); ++d) {
    Loop loop;
    loop.size = output[output.size() - 1 - d];
    if (loop.size == 0) return;
    for (size_t n = 0; n < kInputs; ++n) {
      const Dimensions& input = *inputs[n];
      const size_t size = d < input.size() ? input[input.size() - 1 - d] : 1;
      loop.strides[n] = size == 1 ? 0 : strides[n];
      strides[n] *= size;
    }
    if (loop.size == 1) continue;
    bool isEven = !loops.empty();
    for (size_t n = 0; isEven && n < kInputs; ++n)
      isEven = loop.strides[n] == loops.back().strides[n] * loops.back().size;
    if (isEven)
      loops.back().size *= loop.size;
    else
      loops.push_back(loop);
  }
  if (loops.empty()) loops.emplace_back();
  const Loop inner = loops.front();
  size_t rows = 1;
  for (size_t i = 1; i < loops.size(); ++i) rows *= loops[i].size;
  // The grain counts elements, whatever their size.
  constexpr size_t kPart = 1 << 14;
  const size_t partsOfRow = (inner.size + kPart - 1) / kPart;
  threads::forRanges(pool, rows * partsOfRow, std::max<size_t>(1, kPart / inner.size),
                     [&](uint64_t begin, uint64_t end) {
                       for (uint64_t part = begin; part < end; ++part) {
                         const size_t from = part % partsOfRow * kPart;
                         size_t position = part / partsOfRow;
                         BroadcastRow<kInputs> row;
                         row.first = position * inner.size + from;
                         row.count = std::min(kPart, inner.size - from);
                         row.step = inner.strides;
                         for (size_t n = 0; n < kInputs; ++n) row.at[n] = from * inner.strides[n];
                         for (size_t i = 1; i < loops.size(); ++i) {
                           const size_t index = position % loops[i].size;
                           position /= loops[i].size;
                           for (size_t n = 0; n < kInputs; ++n)
                             row.at[n] += index * loops[i].strides[n];
                         }
                         visit(row);
                       }
                     });
}

// output[i] = function(a[..], b[..]), where `dimensions` are the broadcast of inputs 0 and 1, whose
// elements are a and b. The output may lie in the memory of an input of its own shape.
template <typename T, typename R, typename Function>
void mapBroadcast(const OperationContext& context, const Dimensions& dimensions, const T* a,
                  const T* b, R* output, const Function& function) {
  forEachBroadcastRow<2>(context.threadPool, dimensions,
                         {&context.inputs[0].dimensions, &context.inputs[1].dimensions},
                         [=, &function](const BroadcastRow<2>& row) {
                           const T* left = a + row.at[0];
                           const T* right = b + row.at[1];
                           R* target = output + row.first;
                           const size_t count = row.count;
                           const Function apply = function;
                           if (row.step[0] != 0 && row.step[1] != 0) {
                             base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
                               for (size_t i = 0; i < count; ++i)
                                 target[i] = apply(left[i], right[i]);
                             });
                           } else if (row.step[0] != 0) {
                             const T value = *right;
                             base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
                               for (size_t i = 0; i < count; ++i) target[i] = apply(left[i], value);
                             });
                           } else if (row.step[1] != 0) {
                             const T value = *left;
                             base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
                               for (size_t i = 0; i < count; ++i)
                                 target[i] = apply(value, right[i]);
                             });
                           } else {
                             std::fill_n(target, count, static_cast<R>(function(*left, *right)));
                           }
                         });
}

}  // namespace hearth::ops
