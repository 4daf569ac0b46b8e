// SPDX-License-Identifier: Apache-2.0
#include "graph/channel_scales.h"

#include <mutex>

#include "graph/float_range.h"

namespace hearth::graph {

// What is found out of a list is kept, so that it is read once.
struct ChannelScales::List {
  std::unique_ptr<float[]> numbers;
  size_t count = 0;
  FloatRange range;
  mutable std::once_flag isHashed;
  mutable base::Sha256Digest digest;
};

ChannelScales::ChannelScales(std::span<const float> values) {
  if (values.empty()) return;
  const auto list = std::make_shared<List>();
  list->count = values.size();
  list->numbers = std::make_unique_for_overwrite<float[]>(values.size() + kReadableBehind);
  std::ranges::copy(values, list->numbers.get());
  std::fill_n(list->numbers.get() + values.size(), kReadableBehind, values.back());
  list->range = rangeOf(values);
  list_ = list;
}

ChannelScales::ChannelScales(size_t count, float value)
    : ChannelScales(std::vector<float>(count, value)) {}

std::span<const float> ChannelScales::values() const {
  if (list_ == nullptr) return {};
  return {list_->numbers.get(), list_->count};
}

std::shared_ptr<const float> ChannelScales::from(size_t channel) const {
  return {list_, data() + channel};
}

bool ChannelScales::areWithin(float lowest, float highest) const {
  return list_ == nullptr || list_->range.isWithin(lowest, highest);
}

base::Sha256Digest ChannelScales::digest() const {
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(data()),
                                       size() * sizeof(float));
  if (list_ == nullptr) return base::Sha256::of(bytes);
  std::call_once(list_->isHashed, [&] { list_->digest = base::Sha256::of(bytes); });
  return list_->digest;
}

bool ChannelScales::operator==(const ChannelScales& other) const {
  return list_ == other.list_ || std::ranges::equal(*this, other);
}

}  // namespace hearth::graph
