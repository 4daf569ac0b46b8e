// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "base/sha256.h"
#include "graph/model.h"

namespace hearth::graph {

// SHA-256 over everything of a valid model that decides what it computes, except the bytes of its
// pools: subgraphs, operands, operations, quantisation, constants by copy, and where in which pool
// the others lie. Names do not count. Two models with equal digests and equal pools are the same:
// scales that lie in a pool count by their sum only.
base::Sha256Digest structureDigest(const Model& model);

}  // namespace hearth::graph
