// SPDX-License-Identifier: Apache-2.0
// Packed weights of one prepared model, behind XNNPACK's weights-cache provider.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "memory/mapping.h"

struct xnn_weights_cache_provider;
struct xnn_weights_cache_look_up_key;

namespace hearth::cpu {

// Where weights are used: XNNPACK's own key (seed and two pointers) is too weak to tell apart tied
// weights with different scales, so the driver names the place before each creation call.
struct WeightPlace {
  uint32_t operation = 0;  // index in the subgraph
  uint32_t role = 0;       // several packings of one operation
  auto operator<=>(const WeightPlace&) const = default;
};

// Owns the packed bytes; outlives every XNNPACK operator that was created with its provider.
// Thread-safe: each thread names its own place.
class PackedWeights {
 public:
  PackedWeights();
  ~PackedWeights();
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  // Names the place of the creation call that the calling thread makes next.
  class PlaceScope {
   public:
    PlaceScope(PackedWeights* weights, WeightPlace place, const char* kind);
    ~PlaceScope();
    PlaceScope(const PlaceScope&) = delete;
    PlaceScope& operator=(const PlaceScope&) = delete;
  };

  // What the creation calls take as xnn_weights_cache_t.
  xnn_weights_cache_provider* provider() { return provider_; }

  // For kernels of ours: the place's packed bytes, made by `fill` the first time. Error:
  // kOutOfMemory.
  Result<const uint8_t*> pack(WeightPlace place, const char* kind, size_t size,
                              const std::function<void(uint8_t*)>& fill);

  // Bytes packed so far, by operation kind.
  std::map<std::string, uint64_t> packedBytes() const;
  // Size of the packed weights of a place, 0 when it has none.
  size_t sizeOf(WeightPlace place) const;

 private:
  struct Segment {
    uint8_t* data = nullptr;
    size_t size = 0;
  };
  // Memory handed to XNNPACK for packing and not yet inserted.
  struct Reservation {
    memory::Mapping mapping;  // own mapping for large ones, else in chunks_
    size_t size = 0;
  };

  static size_t lookUp(void* context, const xnn_weights_cache_look_up_key* key);
  static void* reserveSpace(void* context, size_t size);
  static size_t lookUpOrInsert(void* context, const xnn_weights_cache_look_up_key* key,
                               void* data, size_t size);
  static bool isFinalized(void* context);
  static void* offsetToAddress(void* context, size_t offset);

  uint8_t* allocateSmall(size_t size);

  xnn_weights_cache_provider* provider_;
  mutable std::mutex mutex_;
  std::map<WeightPlace, Segment> segments_;
  std::map<uint8_t*, Reservation> reservations_;
  std::vector<memory::Mapping> large_;
  std::vector<memory::Mapping> chunks_;
  size_t chunkUsed_ = 0;
  std::map<std::string, uint64_t> packedBytes_;
};

}  // namespace hearth::cpu
