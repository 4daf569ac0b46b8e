// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "cache/store/segment_store.h"
#include "drivers/cpu/weights/packed_weights.h"

namespace hearth::cpu {

// Calls a handler for the segments that a store finds wrong, from the construction to the
// destruction. A call that was queued by then may still come.
class CorruptionWatch {
 public:
  // Gets the key of a segment that is or was in use, of this model or of another.
  using Handler = std::function<void(const cache::SegmentKey&)>;

  // The handler runs where the store runs what comes after publishing: it may take long, while the
  // store calls its own handlers one by one. It is also called for segments of `weights` that were
  // found wrong before.
  CorruptionWatch(const std::shared_ptr<cache::SegmentStore>& store, const PackedWeights& weights,
                  const Handler& handler);

 private:
  const std::shared_ptr<void> added_;
};

}  // namespace hearth::cpu
