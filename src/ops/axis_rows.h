// SPDX-License-Identifier: Apache-2.0
// The rows of a tensor along one axis: for operations that treat each row by itself.
#pragma once

#include <cstddef>

#include "ops/operation.h"

namespace hearth::ops {

struct AxisRow {
  size_t first = 0;   // flat index of the row's first element
  size_t stride = 1;  // distance between its elements
  size_t size = 0;

  size_t index(size_t i) const { return first + i * stride; }
};

// A tensor as [outer, size, inner], with `size` that of one axis. The product of all three may be
// 0.
struct AxisBlocks {
  size_t outer = 1;
  size_t size = 0;
  size_t inner = 1;

  AxisBlocks(const Dimensions& dimensions, size_t axis) : size(dimensions[axis]) {
    for (size_t i = 0; i < axis; ++i) outer *= dimensions[i];
    for (size_t i = axis + 1; i < dimensions.size(); ++i) inner *= dimensions[i];
  }
};

// Calls visit(row) for each row along `axis` < dimensions.size(); never for an empty tensor.
template <typename Visit>
void forEachAxisRow(const Dimensions& dimensions, size_t axis, const Visit& visit) {
  size_t outer = 1;
  size_t inner = 1;
  for (size_t i = 0; i < axis; ++i) outer *= dimensions[i];
  for (size_t i = axis + 1; i < dimensions.size(); ++i) inner *= dimensions[i];
  const size_t size = dimensions[axis];
  // Without this, the loop over the outer dimensions would run, however large they are.
  if (size == 0 || inner == 0) return;
  for (size_t o = 0; o < outer; ++o) {
    for (size_t i = 0; i < inner; ++i) visit(AxisRow{o * size * inner + i, inner, size});
  }
}

}  // namespace hearth::ops
