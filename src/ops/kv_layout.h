// SPDX-License-Identifier: Apache-2.0
// The layout of the caches in which language models keep keys and values.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "graph/model.h"

namespace hearth::ops {

// A tensor that the client passes in and gets back with the values of more tokens: indices among
// the inputs and outputs of a main subgraph.
struct CachePair {
  uint32_t input = 0;
  uint32_t output = 0;
};

struct ModelByToken {
  std::shared_ptr<const graph::Model> model;
  // Of each pair, whether its last two axes are exchanged.
  std::vector<bool> isExchanged;
};

// Exchanges the last two axes of caches that have their tokens along the last one, so that what one
// token adds lies together: [.., size, tokens] becomes [.., tokens, size], for the input and the
// output. Such a cache is read by one DYNAMIC_UPDATE_SLICE, which writes the output and replaces a
// part of the last axis only, and the output is read by BATCH_MATMULs as their right matrix, which
// multiply with its transpose afterwards. Other pairs stay as they are. The products are the same,
// their sums may be added in another order. `model` has passed graph::validate(), as has the
// result, which shares its pools; each pair has another input. Errors: kBadData for a TRANSPOSE
// that names other axes than its input has.
Result<ModelByToken> layOutByToken(graph::Model model, std::span<const CachePair> pairs);

}  // namespace hearth::ops
