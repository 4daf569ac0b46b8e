// SPDX-License-Identifier: Apache-2.0
// Packed weights of one prepared model, behind XNNPACK's weights-cache provider.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/sha256.h"
#include "drivers/cpu/weights/packed_segment.h"

struct xnn_weights_cache_provider;
struct xnn_weights_cache_look_up_key;

namespace hearth::cpu {

// Where weights are used: XNNPACK's own key (seed and two pointers) is too weak to tell apart tied
// weights with different scales, so the driver names the place before each creation call.
struct WeightPlace {
  uint32_t operation = 0;  // index in the subgraph; kConstants: `role` is an operand
  uint32_t role = 0;       // several packings of one operation
  auto operator<=>(const WeightPlace&) const = default;

  // Constants that are kept as they are, for kernels that pack them at each start.
  static constexpr uint32_t kConstants = UINT32_MAX;
};

// The packed bytes of one place.
struct PackedPlace {
  std::shared_ptr<PackedSegment> segment;
  uint64_t offset = 0;  // in the segment
  uint64_t size = 0;
  uint32_t seed = 0;  // XNNPACK's name of the packing function, 0 for ours
  // Whether the size is known to be what the operation reads.
  bool isProven = true;
  uint8_t* data() const { return segment->data() + offset; }
};

// Holds the packed bytes; outlives every XNNPACK operator that was created with its provider.
// Thread-safe: each thread names its own place.
class PackedWeights {
 public:
  // From this size on a packing is a segment of its own, which others can share.
  static constexpr size_t kOwnSegment = size_t{1} << 20;

  // Address space that small packings share.
  static constexpr size_t kGroup = size_t{64} << 20;
  // For a few packings that are only looked at. The kernel clears two megabytes at the first touch
  // of a larger one.
  static constexpr size_t kProbeGroup = size_t{64} << 10;

  // `isPrivate`: nothing is taken from, or given to, other prepared models of the process.
  explicit PackedWeights(bool isPrivate = false, size_t groupBytes = kGroup);
  ~PackedWeights();
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  // Called for each segment of its own that is packed here, on the packing thread. Set before the
  // first packing.
  void onPacked(std::function<void(const std::shared_ptr<PackedSegment>&)> handler) {
    onPacked_ = std::move(handler);
  }

  // What a place packed at an earlier start holds. Before the creation calls; an alignment, seed or
  // size that does not fit makes the place be packed anew.
  void preset(WeightPlace place, PackedPlace packed);

  // From now on nothing is packed that is not there already: creation calls fail instead. For
  // weights whose sources cannot be read.
  void seal() { isSealed_ = true; }
  bool isSealed() const { return isSealed_; }

  // Makes an operator whose weights are packed at `place`: `make` is XNNPACK's creation call with
  // provider(), and returns its status. `source` names what is packed there, for sharing in this
  // process; null = with nobody.
  //
  // What was preset is used only if it has the size that the operation reads. XNNPACK tells that
  // when it asks for memory, so `make` is called once more before, without any to give.
  template <typename Make>
  auto create(WeightPlace place, const char* kind, const base::Sha256Digest* source, Make make) {
    if (!isProven(place)) {
      const PlaceScope scope(place, kind, nullptr, Packing::kMeasured);
      const auto status = make();
      if (status == decltype(status){}) return status;
      proveSize(place);
    }
    const PlaceScope scope(place, kind, source, Packing::kAllowed);
    return make();
  }

  // The same for weights that have to be converted before they are packed. `make` is a creation
  // call on the bytes it is given: first, if the place is packed already, on any address, which is
  // then not read; else, or should that fail, on what `convert` makes, a container.
  template <typename Convert, typename Make>
  auto createConverted(WeightPlace place, const char* kind, const base::Sha256Digest* source,
                       Convert convert, Make make) {
    alignas(64) static const uint8_t nothing[64] = {};
    if (isSealed_ || isPacked(place, source)) {
      const auto status = create(place, kind, source, [&] {
        forbidPacking();
        return make(static_cast<const void*>(nothing));
      });
      if (isSealed_ || status == decltype(status){}) return status;
    }
    const auto bytes = convert();
    return create(place, kind, source,
                  [&] { return make(static_cast<const void*>(bytes.data())); });
  }

  // What the creation calls take as xnn_weights_cache_t.
  xnn_weights_cache_provider* provider() { return provider_; }

  // For kernels of ours: the place's packed bytes, made by `fill` the first time. Error:
  // kOutOfMemory.
  Result<const uint8_t*> pack(WeightPlace place, const char* kind, const base::Sha256Digest* source,
                              size_t size, const std::function<void(uint8_t*)>& fill);
  // A copy of a constant, 64-byte aligned with readable bytes behind it. After a warm start
  // `source` is not read. Error: kOutOfMemory.
  Result<const uint8_t*> constant(uint32_t operand, std::span<const uint8_t> source);

  // Bytes that the calling thread has packed so far, for any model.
  static uint64_t packedByThisThread();

  bool has(WeightPlace place) const;
  // The same, or other prepared models of the process have it.
  bool isPacked(WeightPlace place, const base::Sha256Digest* source) const;

  // Bytes packed in this start, by operation kind.
  std::map<std::string, uint64_t> packedBytes() const;
  // Bytes that XNNPACK has packed although they were there: it does not ask before some packings.
  uint64_t repackedBytes() const;
  // Presets that did not have the size that the operation reads, or were of another function.
  size_t droppedPresets() const;
  // Bytes that other prepared models of this process had packed.
  uint64_t sharedBytes() const;
  // The packed weights of a place, empty when it has none. Valid, and with the same address, as
  // long as this lives.
  std::span<const uint8_t> bytesOf(WeightPlace place) const;

  // Everything that is packed now.
  std::map<WeightPlace, PackedPlace> places() const;
  // The segments that hold the small packings made since the last call, with the bytes used. They
  // do not change any more.
  struct Group {
    std::shared_ptr<PackedSegment> segment;
    size_t size = 0;
  };
  std::vector<Group> closeGroups();

 private:
  struct Scratch;
  enum class Packing {
    kAllowed,
    kMeasured,   // the size that is asked for is noted and the call then fails
    kForbidden,  // the creation call has no weights to read: it fails where it would have to pack
  };
  // Names the place of the creation call that the calling thread makes next.
  class PlaceScope {
   public:
    PlaceScope(WeightPlace place, const char* kind, const base::Sha256Digest* source,
               Packing packing);
    ~PlaceScope();
    PlaceScope(const PlaceScope&) = delete;
    PlaceScope& operator=(const PlaceScope&) = delete;
  };
  struct CurrentPlace;
  static thread_local CurrentPlace currentPlace;

  static void forbidPacking();
  static uint8_t* makeScratch(size_t size);
  static void dropScratch();
  bool isProven(WeightPlace place) const;
  void proveSize(WeightPlace place);

  static size_t lookUp(void* context, const xnn_weights_cache_look_up_key* key);
  static void* reserveSpace(void* context, size_t size);
  void* reserve(size_t size);
  size_t insert(uint32_t seed, void* data, size_t size);
  static size_t lookUpOrInsert(void* context, const xnn_weights_cache_look_up_key* key, void* data,
                               size_t size);
  static bool isFinalized(void* context);
  static void* offsetToAddress(void* context, size_t offset);

  std::optional<PackedPlace> findPlace(uint32_t seed);
  std::optional<PackedPlace> reserveSmall(size_t size);

  const bool isPrivate_;
  const size_t groupBytes_;
  xnn_weights_cache_provider* provider_;
  std::function<void(const std::shared_ptr<PackedSegment>&)> onPacked_;
  bool isSealed_ = false;
  mutable base::Mutex mutex_;
  std::map<WeightPlace, PackedPlace> places_;
  uint64_t sharedBytes_ = 0;
  uint64_t repackedBytes_ = 0;
  size_t droppedPresets_ = 0;
  std::map<uint8_t*, PackedPlace> reservations_;  // handed out for packing, not yet inserted
  Scratch* kept_ = nullptr;                       // what could not be inserted
  std::vector<Group> groups_;                     // open ones
  std::map<std::string, uint64_t> packedBytes_;
};

}  // namespace hearth::cpu
