// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "cache/store/segment_store.h"
#include "drivers/cpu/weights/packed_segment.h"
#include "drivers/cpu/weights/packed_weights.h"
#include "drivers/cpu/weights/start_outcome.h"

namespace hearth::cpu {

// Publishes the packed weights of one model in a store, in the background. A segment that models
// share is written by one of them. What becomes of a publication is noted in the segment, a failure
// also in the outcome. Work that is queued does not need this object. Thread-safe.
class SegmentPublisher {
 public:
  SegmentPublisher(std::shared_ptr<cache::SegmentStore> store,
                   std::shared_ptr<StartOutcome> outcome)
      : store_(std::move(store)), outcome_(std::move(outcome)) {}

  // Publishes the first `size` bytes, which are final. `isCopiedFirst`: the private memory is freed
  // before the bytes are hashed and written, for large ones that would pile up.
  void publish(const std::shared_ptr<PackedSegment>& packed, size_t size,
               bool isCopiedFirst = false) const;

  // Publishes a segment that lies in the pages of what was written.
  void publish(const std::shared_ptr<PackedSegment>& packed,
               std::unique_ptr<cache::SegmentWriter> written) const;

  // Publishes all packings of the model that the store lacks. This includes packings that other
  // models of this process made and did not keep.
  void publishAll(PackedWeights& weights) const;

  // Whether the store lacks a segment of the model, or has not written it yet.
  static bool hasUnpublished(const PackedWeights& weights);

 private:
  cache::PublishRequest requestFor(const std::shared_ptr<PackedSegment>& packed) const;

  const std::shared_ptr<cache::SegmentStore> store_;
  const std::shared_ptr<StartOutcome> outcome_;
};

}  // namespace hearth::cpu
