// SPDX-License-Identifier: Apache-2.0
// The loop that all data-movement operations share: copies elements of any size between two arrays
// with different strides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/model.h"
#include "threads/thread_pool.h"

namespace hearth::ops {

// One loop of a copy. Strides count elements; a source stride may be negative (reversal) or 0
// (repetition), target positions must not repeat.
struct CopyDimension {
  int64_t size = 0, sourceStride = 0, targetStride = 0;
};

// Copies the product of all sizes elements of `elementSize` bytes. `source` and `target` point at
// the element with all indices 0; the caller has checked that every position lies in bounds. The
// order of the loops is chosen here (rows become memcpy, transpositions run in tiles). Large copies
// are divided among the threads of `pool`, if there is one.
void copyStrided(size_t elementSize, std::vector<CopyDimension> loops, const void* source,
                 void* target, threads::ThreadPool* pool = nullptr);

// Copies `count` pieces of `bytes` bytes, which begin so many bytes apart.
void copyPieces(size_t bytes, uint64_t count, const uint8_t* source, uint64_t sourceStride,
                uint8_t* target, uint64_t targetStride);

// The elements that a slice takes along one dimension: `size` of them from `begin` on, `stride`
// apart. All of them lie inside; begin may be anything when size is 0.
struct SliceRange {
  int64_t begin = 0, stride = 1, size = 0;
};

// Copies the slice of a row-major tensor of `dimensions` (one range for each) into dense memory.
void copySlice(size_t elementSize, const graph::Dimensions& dimensions,
               std::span<const SliceRange> ranges, const void* source, void* target,
               threads::ThreadPool* pool = nullptr);

// Copies a dense tensor of `block` dimensions into a row-major tensor of `dimensions`, where its
// first element goes to the indices `begin`. All of it must fit.
void copyBlock(size_t elementSize, const graph::Dimensions& block, const void* source,
               const graph::Dimensions& dimensions, std::span<const int64_t> begin, void* target,
               threads::ThreadPool* pool = nullptr);

// Writes `count` copies of the element at `value`.
void fillElements(size_t elementSize, const void* value, void* target, uint64_t count);

// Row-major strides in elements, for sizes that were checked not to overflow.
std::vector<int64_t> rowMajorStrides(const graph::Dimensions& dimensions);

}  // namespace hearth::ops
