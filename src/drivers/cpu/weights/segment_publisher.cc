// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/segment_publisher.h"

#include <algorithm>
#include <set>
#include <utility>

namespace hearth::cpu {

void SegmentPublisher::publish(const std::shared_ptr<PackedSegment>& packed, size_t size,
                               bool isCopiedFirst) const {
  if (!packed->claimPublication()) return;
  cache::PublishRequest request = requestFor(packed);
  request.payload = {packed->data(), size};
  if (isCopiedFirst)
    request.copied = [packed](const memory::Mapping& copy) {
      packed->adoptCopy(copy);
    };
  store_->publishAsync(std::move(request));
}

void SegmentPublisher::publish(const std::shared_ptr<PackedSegment>& packed,
                               std::unique_ptr<cache::SegmentWriter> written) const {
  if (!packed->claimPublication()) return;
  cache::PublishRequest request = requestFor(packed);
  request.written = std::move(written);
  store_->publishAsync(std::move(request));
}

cache::PublishRequest SegmentPublisher::requestFor(
    const std::shared_ptr<PackedSegment>& packed) const {
  cache::PublishRequest request;
  request.owner = packed;
  request.done = [packed, outcome = outcome_](cache::StoreResult<cache::SegmentRef> result) {
    if (result) return packed->adopt(std::move(*result));
    packed->giveUpPublication();
    outcome->setUncached(result.error());
  };
  return request;
}

void SegmentPublisher::publishAll(PackedWeights& weights) const {
  std::set<std::shared_ptr<PackedSegment>> own;
  for (const auto& [place, packed] : weights.places())
    if (packed.segment->published() == nullptr && packed.offset == 0 &&
        packed.size == packed.segment->size())
      own.insert(packed.segment);
  for (const auto& packed : own) publish(packed, packed->size());
  for (const PackedWeights::Group& group : weights.closeGroups())
    publish(group.segment, group.size);
}

bool SegmentPublisher::hasUnpublished(const PackedWeights& weights) {
  return std::ranges::any_of(weights.places(), [](const auto& place) {
    return place.second.segment->published() == nullptr;
  });
}

}  // namespace hearth::cpu
