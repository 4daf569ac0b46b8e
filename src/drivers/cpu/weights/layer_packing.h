// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/sha256.h"
#include "drivers/cpu/weights/packed_weights.h"

namespace hearth::cpu {

// Where a layer's kernel packs its weights.
struct LayerPacking {
  PackedWeights* weights = nullptr;
  WeightPlace place;
  std::shared_ptr<const base::Sha256Digest> packed;  // names what is packed there
};

}  // namespace hearth::cpu
