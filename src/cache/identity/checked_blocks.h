// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/sha256.h"

namespace hearth::cache {

// How far a check of blocks (block_checks.h) has come.
struct CheckedBlocks {
  base::Sha256Digest id{};
  uint64_t blocks = 0;  // so many of the first ones are right
  bool isAll = false;   // these are all blocks
};

}  // namespace hearth::cache
