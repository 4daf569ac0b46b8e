// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include "base/mutex.h"
#include "graph/channel_scales.h"

namespace hearth::tflite {

// The long lists of scales that were read from one file. Each subgraph has its own list for weights
// that all subgraphs use; where these lists are equal, the model's operands share one copy.
// Thread-safe.
class ScaleLists {
 public:
  // Returns the scales with these values, shared if possible. `values` lie in the file.
  graph::ChannelScales share(std::span<const float> values);

 private:
  base::Mutex mutex_;
  std::map<std::pair<size_t, uint64_t>, graph::ChannelScales> known_;  // by length and a sample
  size_t bytes_ = 0;
};

}  // namespace hearth::tflite
