// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "graph/model.h"

namespace hearth::ipc {

// How many bytes a computation writes to an output of this shape, which is empty for scalars and
// when it is the operand's. Nothing when that is not complete.
inline std::optional<uint64_t> outputBytes(graph::Operand operand, const graph::Dimensions& shape) {
  if (!shape.empty()) operand.dimensions = shape;
  const auto bytes = graph::byteSize(operand);
  if (!bytes) return std::nullopt;
  return *bytes;
}

}  // namespace hearth::ipc
