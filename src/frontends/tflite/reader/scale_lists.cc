// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/reader/scale_lists.h"

#include <bit>
#include <cstring>

namespace hearth::tflite {
namespace {

// Copying a shorter list costs no more than a look-up.
constexpr size_t kWorthSharing = 1024;
// A bound on what is kept for later subgraphs: lists of a hostile file may overlap each other.
constexpr size_t kMostKeptBytes = size_t{64} << 20;

// A hash that tells lists of different weights apart without reading all their values.
uint64_t sampleOf(std::span<const float> values) {
  constexpr size_t kSamples = 32;
  uint64_t hash = 0;
  for (size_t i = 0; i < kSamples; ++i) {
    const auto bits = std::bit_cast<uint32_t>(values[i * (values.size() - 1) / (kSamples - 1)]);
    hash = (hash ^ bits) * 0x9e3779b97f4a7c15;
  }
  return hash;
}

bool haveEqualBytes(std::span<const float> one, std::span<const float> other) {
  return std::memcmp(one.data(), other.data(), one.size_bytes()) == 0;
}

}  // namespace

graph::ChannelScales ScaleLists::share(std::span<const float> values) {
  if (values.size() < kWorthSharing) return graph::ChannelScales::ofPool(values);
  const std::pair key(values.size(), sampleOf(values));
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(key);
  if (known != known_.end())
    return haveEqualBytes(known->second, values) ? known->second
                                                 : graph::ChannelScales::ofPool(values);
  graph::ChannelScales made = graph::ChannelScales::ofPool(values);
  if (bytes_ + values.size_bytes() > kMostKeptBytes) return made;
  bytes_ += values.size_bytes();
  known_.emplace(key, made);
  return made;
}

}  // namespace hearth::tflite
