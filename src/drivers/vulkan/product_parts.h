// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "cache/store/segment_store.h"
#include "drivers/vulkan/context/gpu.h"

namespace hearth::vulkan {

// In which parts (plan/products.h) a GPU was found to compute products fastest, by their classes: a
// fact of the weight store, for this build, GPU and driver. Thread-safe.
class ProductParts {
 public:
  // Opens the store at the first question; null or none: nothing is remembered.
  using OpenStore = std::function<std::shared_ptr<cache::SegmentStore>()>;
  explicit ProductParts(OpenStore openStore = {}) : openStore_(std::move(openStore)) {}

  std::optional<uint32_t> find(const GpuFacts& facts, const std::string& productClass);
  void keep(const GpuFacts& facts, const std::string& productClass, uint32_t choice);

  // Returns when what was kept is stored.
  void flush();

 private:
  void recall(const GpuFacts& facts);

  const OpenStore openStore_;
  base::Mutex mutex_;
  std::map<std::string, uint32_t> choices_;
  bool hasRecalled_ = false;
  std::shared_ptr<cache::SegmentStore> store_;  // null: nothing is remembered
  std::string key_;                             // of the fact
};

}  // namespace hearth::vulkan
