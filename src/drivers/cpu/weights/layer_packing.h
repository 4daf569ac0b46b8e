// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "base/sha256.h"
#include "drivers/cpu/weights/packed_weights.h"
#include "threads/gemm_hint.h"

namespace hearth::cpu {

// Where a layer's kernel packs its weights.
struct LayerPacking {
  PackedWeights* weights = nullptr;
  WeightPlace place;
  std::shared_ptr<const base::Sha256Digest> packed;  // names what is packed there
};

// How the packed weights of so many columns lie in memory, for the order of their tiles.
inline threads::GemmHint hintOf(const LayerPacking& packing, size_t columns) {
  return {.packedBytesPerColumn = packing.weights->bytesOf(packing.place).size() / columns,
          .columns = columns};
}

}  // namespace hearth::cpu
