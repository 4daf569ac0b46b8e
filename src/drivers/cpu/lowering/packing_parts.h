// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hearth_xnnpack.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "drivers/cpu/lowering/channel_split.h"
#include "drivers/cpu/platform/xnn_operator.h"
#include "drivers/cpu/weights/layer_packing.h"
#include "drivers/cpu/weights/released_pages.h"

namespace hearth::cpu {

// PackedWeights::createInParts() for an operator whose weights are rows of `bytesPerChannel` bytes,
// one for each output channel. `makePart(channels, &op)` is XNNPACK's creation call for some of the
// channels, `make()` that for all. `released` are the pages of the weights that may be released
// once they are packed, or empty.
template <typename MakePart, typename Make>
xnn_status createInParts(const LayerPacking& packing, const char* kind, size_t channels,
                         size_t bytesPerChannel, std::span<const uint8_t> released,
                         MakePart makePart, Make make) {
  const std::vector<ChannelRange> parts = packingParts(channels, bytesPerChannel);
  return packing.weights->createInParts(
      packing.place, kind, packing.packed.get(), parts.size(),
      [&](size_t index) {
        const ChannelRange part = parts[index];
        xnn_operator_t op = nullptr;
        const xnn_status status = makePart(part, &op);
        const XnnOperator owned(op);
        if (!released.empty())
          releasePages(
              released.subspan(part.first * bytesPerChannel, part.count * bytesPerChannel));
        return status;
      },
      make);
}

}  // namespace hearth::cpu
