// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/corruption_watch.h"

namespace hearth::cpu {

CorruptionWatch::CorruptionWatch(const std::shared_ptr<cache::SegmentStore>& store,
                                 const PackedWeights& weights, const Handler& handler)
    : added_(store->addCorruptionHandler(
          [handler, weak = std::weak_ptr(store)](const cache::SegmentKey& key) {
            if (const auto known = weak.lock())
              known->afterPublishing([handler, key] { handler(key); });
          })) {
  store->expectRepairs();
  for (const auto& [place, packed] : weights.places())
    if (const cache::SegmentRef used = packed.segment->published(); used && used->isCorrupt())
      store->afterPublishing([handler, key = used->key()] { handler(key); });
}

}  // namespace hearth::cpu
