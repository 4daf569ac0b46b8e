// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "graph/model.h"
#include "memory/mapping.h"
#include "memory/pool.h"

namespace hearth::graph {

// A model whose constants in pools lie in one, pool 0, which it does not have, and the pieces that
// this pool is made of: they follow each other, and those of constants begin where they may be
// computed with. Valid while the pools of the source are.
struct GatheredConstants {
  Model model;
  std::vector<std::span<const uint8_t>> pieces;
  uint64_t bytes = 0;
};

GatheredConstants gatherConstants(const Model& source);

// The first `bytes` of a mapping as a pool that keeps it.
memory::PoolRef poolOf(std::shared_ptr<const memory::Mapping> data, uint64_t bytes);

}  // namespace hearth::graph
