// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "base/sha256.h"
#include "graph/model.h"

namespace hearth::graph {

// SHA-256 over all that decides what a valid model computes, except the bytes of its pools:
// subgraphs, operands, operations, quantisation, copied constants, and where the others lie in
// which pool. Names do not count. Models with equal digests and equal pools are the same. Only the
// pools tell apart scales that lie in them: the digest has just their sum.
base::Sha256Digest structureDigest(const Model& model);

}  // namespace hearth::graph
