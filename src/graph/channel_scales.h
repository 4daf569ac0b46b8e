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

// The scales of a constant's channels. They never change, and copies share them: the layers of a
// language model have a scale for each of hundreds of thousands of words, which a start would
// otherwise copy, check and hash several times for each signature. Safe to read from any thread.
class ChannelScales {
 public:
  // Numbers behind the last scale that may be read, all like the last scale: kernels read whole
  // vectors.
  static constexpr size_t kReadableBehind = 32;

  ChannelScales() = default;
  ChannelScales(std::span<const float> values);
  ChannelScales(const std::vector<float>& values) : ChannelScales(std::span(values)) {}
  ChannelScales(std::initializer_list<float> values) : ChannelScales(std::span(values)) {}
  // `count` times the same.
  ChannelScales(size_t count, float value);
  // Of numbers that are bytes of one of the model's pools.
  static ChannelScales ofPool(std::span<const float> values);

  bool empty() const { return list_ == nullptr; }
  size_t size() const { return values().size(); }
  const float* data() const { return values().data(); }
  const float* begin() const { return data(); }
  const float* end() const { return data() + size(); }
  float operator[](size_t channel) const { return data()[channel]; }

  // Scale `channel` and those behind it, kept as long as the pointer is. Not of an empty list.
  std::shared_ptr<const float> from(size_t channel) const;

  // Whether all are in [lowest, highest], which are 0 or positive; -0 is not.
  bool areWithin(float lowest, float highest) const;
  // Of their bytes.
  base::Sha256Digest digest() const;
  // The same, but for numbers of a pool a sum that is made while they are read: it tells lists
  // apart where nobody tries to make them alike. Whoever may have has to have the digests of the
  // pools as well.
  base::Sha256Digest fingerprint() const;

  bool operator==(const ChannelScales& other) const;

 private:
  struct List;
  explicit ChannelScales(std::shared_ptr<const List> list) : list_(std::move(list)) {}
  static std::shared_ptr<List> listOf(std::span<const float> values);
  std::span<const float> values() const;

  std::shared_ptr<const List> list_;  // none: empty
};

}  // namespace hearth::graph
