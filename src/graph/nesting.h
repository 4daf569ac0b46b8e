// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace hearth::graph {

// How deep subgraphs may lie within others, the outermost being the first. Whoever goes through a
// model calls itself for each subgraph within another, on a stack whose size its caller chose.
inline constexpr size_t kMaxNesting = 64;

}  // namespace hearth::graph
