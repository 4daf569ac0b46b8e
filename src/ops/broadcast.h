// SPDX-License-Identifier: Apache-2.0
// Broadcasting: shapes are aligned at their last dimension, and a dimension of 1 repeats.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

// The output shape of an element-wise operation with inputs `a` and `b`, of any rank. kBadData when
// the shapes do not fit each other. A dimension of 0 fits 0 and 1 only.
Result<Dimensions> broadcastInputs(const OperationContext& context, size_t a, size_t b);
// The same for any two shapes.
Result<Dimensions> broadcastShapes(const OperationContext& context, const Dimensions& left,
                                   const Dimensions& right);

// Calls visit(outputIndex, aIndex, bIndex) for each element of `output`, the broadcast of a and b,
// in order; all indices are flat.
template <typename Visit>
void forEachBroadcast(const Dimensions& output, const Dimensions& a, const Dimensions& b,
                      const Visit& visit) {
  using Strides = std::vector<size_t>;
  const size_t rank = output.size();
  size_t count = 1;
  for (uint32_t dimension : output) count *= dimension;
  if (count == 0) return;
  const auto stridesOf = [&](const Dimensions& dimensions) {
    Strides strides(rank, 0);
    size_t stride = 1;
    for (size_t i = dimensions.size(); i-- > 0;) {
      strides[i + rank - dimensions.size()] = dimensions[i] == 1 ? 0 : stride;
      stride *= dimensions[i];
    }
    return strides;
  };
  const Strides aStrides = stridesOf(a);
  const Strides bStrides = stridesOf(b);
  const size_t inner = rank == 0 ? 1 : output[rank - 1];
  const size_t aStep = rank == 0 ? 0 : aStrides[rank - 1];
  const size_t bStep = rank == 0 ? 0 : bStrides[rank - 1];
  Strides position(rank, 0);
  size_t aBase = 0;
  size_t bBase = 0;
  for (size_t index = 0; index < count;) {
    for (size_t i = 0; i < inner; ++i, ++index) visit(index, aBase + i * aStep, bBase + i * bStep);
    for (size_t d = rank == 0 ? 0 : rank - 1; d-- > 0;) {
      aBase += aStrides[d];
      bBase += bStrides[d];
      if (++position[d] < output[d]) break;
      aBase -= aStrides[d] * output[d];
      bBase -= bStrides[d] * output[d];
      position[d] = 0;
    }
  }
}

}  // namespace hearth::ops
