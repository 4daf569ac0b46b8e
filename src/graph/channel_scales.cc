// SPDX-License-Identifier: Apache-2.0
#include "graph/channel_scales.h"

#include <bit>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "graph/float_range.h"

namespace hearth::graph {
namespace {

// A sum that depends on each bit and its place. Several chains, since each step waits for the last
// one.
uint64_t sumOf(std::span<const float> values) {
  constexpr size_t kChains = 8;
  constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15;
  const auto step = [](uint64_t chain, uint64_t bits) {
    return std::rotl((chain ^ bits) * kMultiplier, 23);
  };
  uint64_t chains[kChains] = {1, 2, 3, 4, 5, 6, 7, 8};
  // Each step takes two numbers.
  uint64_t pairs[kChains];
  while (values.size() >= 2 * kChains) {
    std::memcpy(pairs, values.data(), sizeof pairs);
    for (size_t c = 0; c < kChains; ++c) chains[c] = step(chains[c], pairs[c]);
    values = values.subspan(2 * kChains);
  }
  uint64_t sum = 0;
  for (const uint64_t chain : chains) sum = step(sum, chain);
  for (const float value : values) sum = step(sum, std::bit_cast<uint32_t>(value));
  return sum;
}

}  // namespace

// Keeps what was computed from a list, so that the list is read once.
struct ChannelScales::List {
  std::unique_ptr<float[]> numbers;
  size_t count = 0;
  FloatRange range;
  std::optional<uint64_t> sum;  // for the scales of a pool
  mutable std::once_flag isHashed;
  mutable base::Sha256Digest digest;
};

std::shared_ptr<ChannelScales::List> ChannelScales::listOf(std::span<const float> values) {
  if (values.empty()) return nullptr;
  auto list = std::make_shared<List>();
  list->count = values.size();
  list->numbers = std::make_unique_for_overwrite<float[]>(values.size() + kReadableBehind);
  std::ranges::copy(values, list->numbers.get());
  std::fill_n(list->numbers.get() + values.size(), kReadableBehind, values.back());
  list->range = rangeOf(values);
  return list;
}

ChannelScales::ChannelScales(std::span<const float> values) : list_(listOf(values)) {}

ChannelScales ChannelScales::ofPool(std::span<const float> values) {
  std::shared_ptr<List> list = listOf(values);
  if (list != nullptr) list->sum = sumOf(values);
  return ChannelScales(std::move(list));
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

base::Sha256Digest ChannelScales::fingerprint() const {
  if (list_ == nullptr || !list_->sum) return digest();
  base::Sha256Digest fingerprint{};
  const uint64_t numbers[] = {list_->count, *list_->sum};
  static_assert(sizeof numbers <= sizeof fingerprint);
  std::memcpy(fingerprint.data(), numbers, sizeof numbers);
  return fingerprint;
}

bool ChannelScales::operator==(const ChannelScales& other) const {
  return list_ == other.list_ || std::ranges::equal(*this, other);
}

}  // namespace hearth::graph
