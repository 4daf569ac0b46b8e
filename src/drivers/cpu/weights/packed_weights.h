// SPDX-License-Identifier: Apache-2.0
// Packed weights of one prepared model, behind XNNPACK's weights-cache provider.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/sha256.h"
#include "base/thread_local.h"
#include "cache/store/segment_writer.h"
#include "drivers/cpu/weights/packed_segment.h"
#include "drivers/cpu/weights/packing_source.h"
#include "memory/mapping.h"

struct xnn_weights_cache_provider;
struct xnn_weights_cache_look_up_key;

namespace hearth::cpu {

// How packed weights lie in memory. Which layout a layer reads may depend on its shapes, and a
// model may run with several shapes on the same packed weights.
enum class PackedLayout : uint32_t {
  kXnnpack,
  kXnnpackWindows,  // XNNPACK's for a product over gathered windows
  kVnni,
  kAvx2,
  kWinograd2,
  kWinograd4,
  kQs8Depthwise,
  kAvx2Depthwise,
  kTranspose,
  kHalf,
  kQs16,
  kInt4Panels,
  kInt4Sums,
};

// Kernels load packed weights with aligned instructions of this many bytes.
inline constexpr size_t kPackingAlignment = 64;

// Where weights are used. XNNPACK's own key (seed and two pointers) cannot tell apart tied weights
// with different scales, so the driver names the place before each creation call.
struct WeightPlace {
  uint32_t operation = 0;  // index in the subgraph; kConstants: `role` is an operand
  uint32_t role = 0;       // tells several packings of one operation apart

  // The place of a part of a layer in a layout. There are fewer parts than 2^24.
  static constexpr WeightPlace of(uint32_t operation, PackedLayout layout, size_t part = 0) {
    return {operation, static_cast<uint32_t>(layout) << 24 | static_cast<uint32_t>(part)};
  }
  auto operator<=>(const WeightPlace&) const = default;

  // Operation of constants that are kept as they are, for kernels that pack them at each start.
  static constexpr uint32_t kConstants = UINT32_MAX;
  // Bit of the role of a constant: a float16 one that is widened to float32.
  static constexpr uint32_t kWide = 0x80000000;
};

// The packed bytes of one place.
struct PackedPlace {
  std::shared_ptr<PackedSegment> segment;
  uint64_t offset = 0;  // in the segment
  uint64_t size = 0;
  uint32_t seed = 0;  // XNNPACK's name of the packing function, 0 for ours
  // Whether the size is known to be what the operation reads.
  bool isProven = true;
  // Whether another model packed it (PackedWeights::takeFrom()).
  bool isTaken = false;
  uint8_t* data() const { return segment->data() + offset; }
};

// Holds the packed bytes; outlives every XNNPACK operator that was created with its provider.
// Thread-safe: each thread names its own place.
class PackedWeights {
 public:
  // Bytes from which on a packing is a segment of its own, which other models can share. Those of a
  // small language model's layers take a hundred kilobytes or more, and each of its signatures has
  // all of them. A segment takes a file and a mapping, so tiny packings share one.
  static constexpr size_t kOwnSegment = size_t{64} << 10;

  // Bytes of a segment that small packings share.
  static constexpr size_t kGroup = size_t{8} << 20;
  // Bytes of a group for a few packings that a probe only looks at. In a larger one the operating
  // system clears two megabytes at the first touch.
  static constexpr size_t kProbeGroup = size_t{64} << 10;

  // `isPrivate`: this object shares no packings with other prepared models of the process.
  explicit PackedWeights(bool isPrivate = false, size_t groupBytes = kGroup);
  ~PackedWeights();
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  // `handler` is called on the packing thread for each packing of kOwnSegment bytes or more, and
  // for each group of smaller ones that is full; `size` is how many bytes of it are used. Set it
  // before the first packing.
  using PackedHandler = std::function<void(const std::shared_ptr<PackedSegment>&, size_t size)>;
  void onPacked(PackedHandler handler) { onPacked_ = std::move(handler); }

  // A store that large packings may be written into part by part. `start` begins to write so many
  // bytes (SegmentStore::beginWriting), `publish` publishes what is written, in whose pages the
  // segment lies. Set it before the first packing.
  struct PartStore {
    std::function<std::unique_ptr<cache::SegmentWriter>(size_t size)> start;
    std::function<void(const std::shared_ptr<PackedSegment>&,
                       std::unique_ptr<cache::SegmentWriter>)>
        publish;
  };
  void writeParts(PartStore store) { partStore_ = std::move(store); }

  // Gives a place the bytes that an earlier start packed for it. Call it before the creation calls;
  // where alignment, seed or size do not fit, the place is packed anew.
  void preset(WeightPlace place, PackedPlace packed);

  // Says that all places are preset: creation calls need no names of what they pack. Should a
  // preset not fit, its packing is not shared with other models of this process.
  void setAllPreset() { isAllPreset_ = true; }
  bool isAllPreset() const { return isAllPreset_; }

  // From now on describe() has an effect. Set it before the creation calls.
  void noteSources() { notesSources_ = true; }
  bool notesSources() const { return notesSources_; }
  // Notes what the packing that creation calls name by this digest is made from.
  void describe(const base::Sha256Digest& source, PackingSource described);
  // What describe() was told of a packing; null for others.
  std::shared_ptr<const PackingSource> description(const base::Sha256Digest& source) const;

  // From now on creation calls take what `find` returns for their source in place of packing, like
  // presets. It is asked for places that have none, with sources that are described. Set it before
  // the creation calls, which may call it from several threads at once.
  using Finder =
      std::function<std::optional<PackedPlace>(WeightPlace place, const PackingSource& source)>;
  void takeFrom(Finder find) { finder_ = std::move(find); }
  // Bytes of what creation calls have taken in this way and use.
  uint64_t takenBytes() const;

  // Forbids packing: from now on creation calls fail where they would have to pack. For weights
  // whose sources cannot be read.
  void seal() { isSealed_ = true; }
  bool isSealed() const { return isSealed_; }

  // Makes an operator whose weights are packed at `place`. `make` is XNNPACK's creation call with
  // provider() and returns its status. `source` names what is packed, so that models of this
  // process share it; null = it is not shared.
  //
  // A preset is used only if it has the size that the operation reads. XNNPACK tells that size when
  // it reserves memory, so `make` is called once beforehand, with a provider that refuses it.
  template <typename Make>
  auto create(WeightPlace place, const char* kind, const base::Sha256Digest* source, Make make) {
    take(place, source);
    if (!isProven(place)) {
      const PlaceScope scope(place, kind, nullptr, Packing::kMeasured);
      const auto status = make();
      if (status == decltype(status){}) return status;
      proveSize(place);
    }
    const PlaceScope scope(place, kind, source, Packing::kAllowed);
    return make();
  }

  // The same for weights that can be packed in `parts` parts, one after the other, which together
  // are what `make` would pack. `makePart(part)` is a creation call for an operator of that part
  // alone, which it destroys. Takes the way of create() where that is not worth it, or where the
  // sizes of the parts say that they are not the whole.
  template <typename MakePart, typename Make>
  auto createInParts(WeightPlace place, const char* kind, const base::Sha256Digest* source,
                     size_t parts, MakePart makePart, Make make) {
    take(place, source);
    if (parts > 1 && partStore_.start && !isSealed_ && !isPacked(place, source)) {
      Measured whole;
      {
        const PlaceScope scope(place, kind, nullptr, Packing::kMeasured);
        const auto status = make();
        if (status == decltype(status){}) return status;
        whole = measured();
      }
      packParts(place, kind, source, parts, whole, [&](size_t part) {
        const auto status = makePart(part);
        return status == decltype(status){};
      });
    }
    return create(place, kind, source, make);
  }

  // The same for weights that are converted before they are packed. `make` is a creation call on
  // the bytes that it is given. If the place is packed already, they are a dummy that XNNPACK does
  // not read. Else, or where that call fails, they are those of the container that `convert` makes.
  template <typename Convert, typename Make>
  auto createConverted(WeightPlace place, const char* kind, const base::Sha256Digest* source,
                       Convert convert, Make make) {
    alignas(64) static const uint8_t nothing[64] = {};
    take(place, source);
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

  // The xnn_weights_cache_t for creation calls.
  xnn_weights_cache_provider* provider() { return provider_; }

  // For kernels of ours: the packed bytes of the place, `size` of them, which `fill` writes the
  // first time. They are valid as long as this lives. Error: kOutOfMemory.
  Result<const uint8_t*> pack(WeightPlace place, const char* kind, const base::Sha256Digest* source,
                              size_t size, const std::function<void(uint8_t*)>& fill);
  // The same where the size depends on what is packed. `fits` says whether bytes that are there
  // already are such a packing; otherwise `measure` reads the source and gives the size.
  Result<std::span<const uint8_t>> packMeasured(
      WeightPlace place, const char* kind, const base::Sha256Digest* source,
      const std::function<bool(std::span<const uint8_t>)>& fits,
      const std::function<size_t()>& measure, const std::function<void(uint8_t*)>& fill);
  // A copy of a constant, 64-byte aligned with readable bytes behind it, valid as long as this
  // lives. A warm start does not read `bytes`. `source` as in create(). Error: kOutOfMemory.
  Result<const uint8_t*> constant(uint32_t operand, std::span<const uint8_t> bytes,
                                  const base::Sha256Digest* source = nullptr);

  // Bytes that the calling thread has packed so far, for any model.
  static uint64_t packedByThisThread();

  bool has(WeightPlace place) const;
  // Whether this or another prepared model of the process has the packing.
  bool isPacked(WeightPlace place, const base::Sha256Digest* source) const;

  // Bytes packed in this start, by operation kind.
  std::map<std::string, uint64_t> packedBytes() const;
  // Bytes that XNNPACK packed although they were there: some operators pack without a look-up.
  uint64_t repackedBytes() const;
  // Number of presets of a wrong size or of another packing function.
  size_t droppedPresets() const;
  // Bytes that this model uses and other prepared models of this process packed.
  uint64_t sharedBytes() const;
  // The packed weights of a place; empty when it has none. Valid, at the same address, as long as
  // this lives.
  std::span<const uint8_t> bytesOf(WeightPlace place) const;

  // How often segments of the known places were repaired, by any model. Changes with each repair.
  uint64_t repairs() const;
  // Everything that is packed now.
  std::map<WeightPlace, PackedPlace> places() const;
  // Whether that is everything that operators use: not when memory was missing to note a packing.
  bool hasAllPlaces() const { return hasAllPlaces_.load(std::memory_order_relaxed); }
  // The places whose packings are described, with their sources.
  std::map<WeightPlace, std::shared_ptr<const PackingSource>> sources() const;
  // The segments with the small packings made since the last call that onPacked() was not told of,
  // and how many of their bytes are used. Nothing is added to these segments any more.
  struct Group {
    std::shared_ptr<PackedSegment> segment;
    size_t size = 0;
    size_t inProgress = 0;  // packings that are reserved and not inserted
  };
  std::vector<Group> closeGroups();

 private:
  struct Scratch;
  enum class Packing {
    kAllowed,
    kMeasured,   // reserve() notes the size and fails, and with it the creation call
    kForbidden,  // the creation call has no weights to read: reserve() fails
    kPart,       // into the parted segment of the current place
  };
  // What a creation call wants to pack.
  struct Measured {
    size_t size = 0;    // 0: it did not say
    uint32_t seed = 0;  // under which it looks for the packing
    bool isLookedUp = false;
  };
  // While it lives, creation calls of the calling thread are for this place.
  class PlaceScope {
   public:
    PlaceScope(WeightPlace place, const char* kind, const base::Sha256Digest* source,
               Packing packing);
    ~PlaceScope();
    PlaceScope(const PlaceScope&) = delete;
    PlaceScope& operator=(const PlaceScope&) = delete;
  };
  struct CurrentPlace;
  HEARTH_THREAD_LOCAL static CurrentPlace currentPlace;

  static void forbidPacking();
  static uint8_t* makeScratch(size_t size);
  static void dropScratch();
  void take(WeightPlace place, const base::Sha256Digest* source);
  bool isProven(WeightPlace place) const;
  void proveSize(WeightPlace place);
  static Measured measured();
  void packParts(WeightPlace place, const char* kind, const base::Sha256Digest* source,
                 size_t parts, const Measured& whole, const std::function<bool(size_t)>& makePart);

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
  bool leaveGroup(const std::shared_ptr<PackedSegment>& segment);
  std::optional<Group> takeFullGroup();

  const bool isPrivate_;
  const size_t groupBytes_;
  xnn_weights_cache_provider* provider_;
  PartStore partStore_;
  PackedHandler onPacked_;
  Finder finder_;
  bool notesSources_ = false;
  bool isSealed_ = false;
  bool isAllPreset_ = false;
  mutable base::Mutex mutex_;
  std::map<WeightPlace, PackedPlace> places_;
  std::map<base::Sha256Digest, std::shared_ptr<const PackingSource>> described_;
  std::map<WeightPlace, std::shared_ptr<const PackingSource>> sources_;
  uint64_t sharedBytes_ = 0;
  uint64_t repackedBytes_ = 0;
  size_t droppedPresets_ = 0;
  std::vector<memory::Mapping> partBuffers_;      // for the next parted segments
  std::map<uint8_t*, PackedPlace> reservations_;  // handed out for packing, not yet inserted
  Scratch* kept_ = nullptr;                       // packed bytes that could not be inserted
  std::atomic<bool> hasAllPlaces_ = true;
  std::vector<Group> groups_;  // open ones
  std::map<std::string, uint64_t> packedBytes_;
};

}  // namespace hearth::cpu
