// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "base/sha256.h"

namespace hearth::graph {

// The scales of a constant's channels. Immutable and shared by copies: the layers of a language
// model have a scale for each of hundreds of thousands of words, which a start would otherwise
// copy, check and hash several times for each signature. Safe to read from any thread.
class ChannelScales {
 public:
  // How many numbers behind the last scale may be read, since kernels read whole vectors. All equal
  // the last scale.
  static constexpr size_t kReadableBehind = 32;

  ChannelScales() = default;
  ChannelScales(std::span<const float> values);
  ChannelScales(const std::vector<float>& values) : ChannelScales(std::span(values)) {}
  ChannelScales(std::initializer_list<float> values) : ChannelScales(std::span(values)) {}
  // `count` scales with the same value.
  ChannelScales(size_t count, float value);
  // Scales whose bytes are a part of one of the model's pools. They are copied.
  static ChannelScales ofPool(std::span<const float> values);

  bool empty() const { return list_ == nullptr; }
  size_t size() const { return values().size(); }
  const float* data() const { return values().data(); }
  const float* begin() const { return data(); }
  const float* end() const { return data() + size(); }
  float operator[](size_t channel) const { return data()[channel]; }

  // A pointer to scale `channel` and those after it, which keeps them alive. Not for an empty list.
  std::shared_ptr<const float> from(size_t channel) const;

  // Whether all scales are in [lowest, highest], which are 0 or positive. -0 is outside.
  bool areWithin(float lowest, float highest) const;
  // SHA-256 of their bytes.
  base::Sha256Digest digest() const;
  // The same, but for the scales of a pool a sum that was computed when they were read. It tells
  // lists apart unless somebody makes them collide; a caller who must fear that also uses the
  // digests of the pools.
  base::Sha256Digest fingerprint() const;

  bool operator==(const ChannelScales& other) const;

 private:
  struct List;
  explicit ChannelScales(std::shared_ptr<const List> list) : list_(std::move(list)) {}
  static std::shared_ptr<List> listOf(std::span<const float> values);
  std::span<const float> values() const;

  std::shared_ptr<const List> list_;  // null: empty
};

}  // namespace hearth::graph
