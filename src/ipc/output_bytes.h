// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "graph/model.h"

namespace hearth::ipc {

// How many bytes a computation writes to an output of this shape, which is empty for scalars and
// when it is the operand's. In a shape a dimension of 0 means no elements, in an operand that it is
// unknown: nothing is the result when that is all that there is.
inline std::optional<uint64_t> outputBytes(graph::Operand operand, const graph::Dimensions& shape) {
  if (std::ranges::find(shape, 0u) != shape.end()) return 0;
  if (!shape.empty()) operand.dimensions = shape;
  const auto bytes = graph::byteSize(operand);
  if (!bytes) return std::nullopt;
  return *bytes;
}

}  // namespace hearth::ipc
