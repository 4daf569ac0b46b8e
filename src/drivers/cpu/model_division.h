// SPDX-License-Identifier: Apache-2.0
// How a model is divided in which shapes depend on values (CutModel).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/model.h"

namespace hearth::cpu {

// How often a model is divided; what lies behind is interpreted. Each division copies what is left
// of the model.
inline constexpr unsigned kMostDivisions = 16;

// The operations of the parts, as indices in the main subgraph, in its order.
struct ModelDivision {
  std::vector<uint32_t> front;  // what reads no result of `cut`
  std::vector<uint32_t> cut;    // the operations whose results have shapes that depend on values
  std::vector<uint32_t> rest;   // what reads results of `cut`, directly or not
};

// `open` are the operations of PartlySpecializedModel::open.
ModelDivision divideModel(const graph::Subgraph& main, std::span<const uint32_t> open);

// numbers[o] for each of the operations.
std::vector<uint32_t> numbersOf(std::span<const uint32_t> operations,
                                std::span<const uint32_t> numbers);

}  // namespace hearth::cpu
