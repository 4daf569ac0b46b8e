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

// Calls visit(arguments, row) for rows that cover all elements of `output`, the broadcast of all
// `inputs`, once; on the threads of `pool`, if there is one. All indices are flat. For 2 and 3
// inputs.
template <size_t kInputs>
void visitBroadcastRows(threads::ThreadPool* pool, const Dimensions& output,
                        const std::array<const Dimensions*, kInputs>& inputs,
                        void (*visit)(const void* arguments, const BroadcastRow<kInputs>& row),
                        const void* arguments);

// The same with an object that is called: visit(row).
template <size_t kInputs, typename Visit>
void forEachBroadcastRow(threads::ThreadPool* pool, const Dimensions& output,
                         const std::array<const Dimensions*, kInputs>& inputs, const Visit& visit) {
  visitBroadcastRows<kInputs>(
      pool, output, inputs,
      [](const void* called, const BroadcastRow<kInputs>& row) {
        (*static_cast<const Visit*>(called))(row);
      },
      &visit);
}

// output[i] = function(a[..], b[..]), where `dimensions` are the broadcast of those of a and b,
// `inputs`. The output may lie in the memory of an input of its own shape.
template <typename T, typename R, typename Function>
void mapBroadcast(threads::ThreadPool* pool, const Dimensions& dimensions,
                  const std::array<const Dimensions*, 2>& inputs, const T* a, const T* b, R* output,
                  const Function& function) {
  forEachBroadcastRow<2>(pool, dimensions, inputs, [=, &function](const BroadcastRow<2>& row) {
    const T* left = a + row.at[0];
    const T* right = b + row.at[1];
    R* target = output + row.first;
    const size_t count = row.count;
    const Function apply = function;
    if (row.step[0] != 0 && row.step[1] != 0) {
      base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
        for (size_t i = 0; i < count; ++i) target[i] = apply(left[i], right[i]);
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
        for (size_t i = 0; i < count; ++i) target[i] = apply(value, right[i]);
      });
    } else {
      std::fill_n(target, count, static_cast<R>(function(*left, *right)));
    }
  });
}

// The same of inputs 0 and 1, whose elements are a and b.
template <typename T, typename R, typename Function>
void mapBroadcast(const OperationContext& context, const Dimensions& dimensions, const T* a,
                  const T* b, R* output, const Function& function) {
  mapBroadcast(context.threadPool, dimensions,
               {&context.inputs[0].dimensions, &context.inputs[1].dimensions}, a, b, output,
               function);
}

}  // namespace hearth::ops
