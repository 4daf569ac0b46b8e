// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace hearth::graph {

// How deep subgraphs may nest, counting the outermost. Code that walks a model recurses for each
// nested subgraph, on a stack whose size its caller chose.
inline constexpr size_t kMaxNesting = 64;

}  // namespace hearth::graph
