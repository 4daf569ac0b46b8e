// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/constant_tags.h"

#include <utility>

namespace hearth::cpu {

ConstantTags::ConstantTags(std::shared_ptr<const graph::Model> model,
                           std::shared_ptr<cache::SegmentStore> store, unsigned threads)
    : model_(std::move(model)), store_(std::move(store)), threads_(threads) {}

std::optional<cache::ContentTags> ConstantTags::of(const PackingSource::Range& range) {
  if (range.pool >= model_->pools.size()) return std::nullopt;
  const memory::Pool& pool = *model_->pools[range.pool];
  if (pool.fd() < 0 || range.length == 0 || range.offset > pool.size() ||
      range.length > pool.size() - range.offset)
    return std::nullopt;
  const std::tuple key(range.pool, range.offset, range.length);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
  }
  // Not under the lock. Should two threads read the same constant, both get the same.
  const auto read = store_->contentTags(
      cache::ContentSource::of(pool.fd(), pool.offset() + range.offset, range.length), threads_);
  std::optional<cache::ContentTags> tags = read ? *read : std::nullopt;
  const std::lock_guard lock(mutex_);
  if (tags && !known_.contains(key)) readBytes_ += range.length;
  return known_.try_emplace(key, std::move(tags)).first->second;
}

uint64_t ConstantTags::readBytes() const {
  const std::lock_guard lock(mutex_);
  return readBytes_;
}

}  // namespace hearth::cpu
