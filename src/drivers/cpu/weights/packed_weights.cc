// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/packed_weights.h"

#include <hearth_xnnpack.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "base/caught.h"
#include "base/thread_local.h"
#include "drivers/cpu/weights/parted_segment.h"
#include "drivers/cpu/weights/shared_packings.h"

namespace hearth::cpu {
namespace {

size_t roundedUp(size_t size) {
  return (size + kPackingAlignment - 1) / kPackingAlignment * kPackingAlignment;
}

HEARTH_THREAD_LOCAL uint64_t packedByThread = 0;

}  // namespace

struct PackedWeights::CurrentPlace {
  WeightPlace place;
  const char* kind = "";
  const base::Sha256Digest* source = nullptr;
  // XNNPACK packs into it what is there already, where it packs without a look-up. PlaceScope frees
  // it: thread-local variables have no destructors here, because these would have to outlive the
  // library, and because the C library ends the process when it has no memory to register them.
  Scratch* scratch = nullptr;
  Packing packing = Packing::kAllowed;
  Measured measured;
  PartedSegment* parted = nullptr;
};
HEARTH_THREAD_LOCAL constinit PackedWeights::CurrentPlace PackedWeights::currentPlace;

PackedWeights::PlaceScope::PlaceScope(WeightPlace place, const char* kind,
                                      const base::Sha256Digest* source, Packing packing) {
  dropScratch();
  currentPlace = {place, kind, source, nullptr, packing, {}, nullptr};
}

PackedWeights::PlaceScope::~PlaceScope() {
  dropScratch();
  currentPlace = {};
}

// The bytes follow it.
struct alignas(kPackingAlignment) PackedWeights::Scratch {
  Scratch* next = nullptr;
  uint8_t* data() { return reinterpret_cast<uint8_t*>(this + 1); }
};

uint8_t* PackedWeights::makeScratch(size_t size) {
  dropScratch();
  void* const memory = std::aligned_alloc(kPackingAlignment, sizeof(Scratch) + roundedUp(size));
  if (memory == nullptr) return nullptr;
  currentPlace.scratch = new (memory) Scratch;
  std::memset(currentPlace.scratch->data(), 0, size);
  return currentPlace.scratch->data();
}

void PackedWeights::dropScratch() {
  std::free(std::exchange(currentPlace.scratch, nullptr));
}

void PackedWeights::forbidPacking() {
  if (currentPlace.packing == Packing::kAllowed) currentPlace.packing = Packing::kForbidden;
}

bool PackedWeights::isProven(WeightPlace place) const {
  const std::lock_guard lock(mutex_);
  const auto known = places_.find(place);
  return known == places_.end() || known->second.isProven;
}

void PackedWeights::proveSize(WeightPlace place) {
  const std::lock_guard lock(mutex_);
  const auto known = places_.find(place);
  if (known == places_.end()) return;
  if (known->second.size == currentPlace.measured.size) {
    known->second.isProven = true;
    return;
  }
  places_.erase(known);
  ++droppedPresets_;
}

PackedWeights::PackedWeights(bool isPrivate, size_t groupBytes)
    : isPrivate_(isPrivate), groupBytes_(groupBytes), provider_(new xnn_weights_cache_provider{}) {
  provider_->context = this;
  provider_->look_up = &lookUp;
  provider_->reserve_space = &reserveSpace;
  provider_->look_up_or_insert = &lookUpOrInsert;
  provider_->is_finalized = &isFinalized;
  provider_->offset_to_addr = &offsetToAddress;
  // XNNPACK never calls delete_cache on a provider that is not its own.
  provider_->delete_cache = [](void*) {
    return xnn_status_success;
  };
}

PackedWeights::~PackedWeights() {
  while (kept_ != nullptr) std::free(std::exchange(kept_, kept_->next));
  delete provider_;
}

void PackedWeights::preset(WeightPlace place, PackedPlace packed) {
  if (packed.offset % kPackingAlignment != 0) return;
  const std::lock_guard lock(mutex_);
  packed.isProven = false;
  places_[place] = std::move(packed);
}

void PackedWeights::describe(const base::Sha256Digest& source, PackingSource described) {
  if (!notesSources_) return;
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const PackingSource>& known = described_[source];
  if (known == nullptr) known = std::make_shared<const PackingSource>(std::move(described));
}

std::shared_ptr<const PackingSource> PackedWeights::description(
    const base::Sha256Digest& source) const {
  const std::lock_guard lock(mutex_);
  const auto it = described_.find(source);
  return it != described_.end() ? it->second : nullptr;
}

// Notes the source of the place, and gives the place what the finder has for it.
void PackedWeights::take(WeightPlace place, const base::Sha256Digest* source) {
  if (source == nullptr || !notesSources_) return;
  const std::shared_ptr<const PackingSource> described = description(*source);
  if (described == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    sources_[place] = described;
  }
  if (!finder_ || isPrivate_ || isPacked(place, source)) return;
  std::optional<PackedPlace> found = finder_(place, *described);
  if (!found) return;
  found->isTaken = true;
  preset(place, *std::move(found));
}

uint64_t PackedWeights::takenBytes() const {
  const std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (const auto& [place, packed] : places_)
    if (packed.isTaken) bytes += packed.size;
  return bytes;
}

std::map<WeightPlace, std::shared_ptr<const PackingSource>> PackedWeights::sources() const {
  const std::lock_guard lock(mutex_);
  return sources_;
}

Result<const uint8_t*> PackedWeights::pack(WeightPlace place, const char* kind,
                                           const base::Sha256Digest* source, size_t size,
                                           const std::function<void(uint8_t*)>& fill) {
  HEARTH_ASSIGN(
      const std::span<const uint8_t> packed,
      packMeasured(
          place, kind, source, [&](std::span<const uint8_t> known) { return known.size() == size; },
          [&] { return size; }, fill));
  return packed.data();
}

Result<std::span<const uint8_t>> PackedWeights::packMeasured(
    WeightPlace place, const char* kind, const base::Sha256Digest* source,
    const std::function<bool(std::span<const uint8_t>)>& fits,
    const std::function<size_t()>& measure, const std::function<void(uint8_t*)>& fill) {
  take(place, source);
  const PlaceScope scope(place, kind, source, Packing::kAllowed);
  const auto known = findPlace(0);
  if (known) {
    const std::span<const uint8_t> bytes(known->data(), known->size);
    if (fits(bytes)) return bytes;
    const std::lock_guard lock(mutex_);
    droppedPresets_ += places_.erase(place);
  }
  if (isSealed_)
    return fail(ErrorCode::kOutOfMemory, "The weights of a {} cannot be read any more.", kind);
  const size_t size = measure();
  auto* data = static_cast<uint8_t*>(reserveSpace(this, size));
  if (data == nullptr)
    return fail(ErrorCode::kOutOfMemory, "There is no memory for {} bytes of packed weights.",
                size);
  fill(data);
  return std::span(reinterpret_cast<const uint8_t*>(lookUpOrInsert(this, nullptr, data, size)),
                   size);
}

Result<const uint8_t*> PackedWeights::constant(uint32_t operand, std::span<const uint8_t> bytes,
                                               const base::Sha256Digest* source) {
  return pack({WeightPlace::kConstants, operand}, "CONSTANT", source, bytes.size(),
              [&](uint8_t* data) { std::memcpy(data, bytes.data(), bytes.size()); });
}

uint64_t PackedWeights::packedByThisThread() {
  return packedByThread;
}

bool PackedWeights::has(WeightPlace place) const {
  const std::lock_guard lock(mutex_);
  return places_.contains(place);
}

bool PackedWeights::isPacked(WeightPlace place, const base::Sha256Digest* source) const {
  return has(place) || (source != nullptr && !isPrivate_ &&
                        SharedPackings::instance().find(*source).segment != nullptr);
}

std::map<std::string, uint64_t> PackedWeights::packedBytes() const {
  const std::lock_guard lock(mutex_);
  return packedBytes_;
}

uint64_t PackedWeights::sharedBytes() const {
  const std::lock_guard lock(mutex_);
  return sharedBytes_;
}

uint64_t PackedWeights::repackedBytes() const {
  const std::lock_guard lock(mutex_);
  return repackedBytes_;
}

size_t PackedWeights::droppedPresets() const {
  const std::lock_guard lock(mutex_);
  return droppedPresets_;
}

std::span<const uint8_t> PackedWeights::bytesOf(WeightPlace place) const {
  const std::lock_guard lock(mutex_);
  const auto it = places_.find(place);
  if (it == places_.end()) return {};
  return {it->second.data(), it->second.size};
}

uint64_t PackedWeights::repairs() const {
  const std::lock_guard lock(mutex_);
  uint64_t repairs = 0;
  for (const auto& [place, packed] : places_) repairs += packed.segment->repairs();
  return repairs;
}

std::map<WeightPlace, PackedPlace> PackedWeights::places() const {
  const std::lock_guard lock(mutex_);
  return places_;
}

std::vector<PackedWeights::Group> PackedWeights::closeGroups() {
  const std::lock_guard lock(mutex_);
  partBuffers_.clear();
  for (const Group& group : groups_) group.segment->trim(group.size);
  return std::exchange(groups_, {});
}

// The current place's bytes if they are known and of that packing function.
std::optional<PackedPlace> PackedWeights::findPlace(uint32_t seed) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = places_.find(currentPlace.place);
    if (it != places_.end()) {
      if (it->second.seed == seed) return it->second;
      // The operator cannot read bytes of another packing function. No operator uses the place yet:
      // XNNPACK looks each place up with one seed only.
      places_.erase(it);
      ++droppedPresets_;
    }
  }
  if (currentPlace.source == nullptr || isPrivate_) return std::nullopt;
  const SharedPacking shared = SharedPackings::instance().find(*currentPlace.source);
  if (shared.segment == nullptr || shared.seed != seed) return std::nullopt;
  const PackedPlace packed{shared.segment, 0, shared.segment->size(), seed};
  const std::lock_guard lock(mutex_);
  sharedBytes_ += packed.size;
  return places_.try_emplace(currentPlace.place, packed).first->second;
}

// The offset that XNNPACK gets is the address itself: XNNPACK only hands it to offset_to_addr.
size_t PackedWeights::lookUp(void* context, const xnn_weights_cache_look_up_key* key) {
  if (currentPlace.packing == Packing::kMeasured) {
    currentPlace.measured.seed = key->seed;
    currentPlace.measured.isLookedUp = true;
  }
  if (currentPlace.packing == Packing::kMeasured || currentPlace.packing == Packing::kPart)
    return SIZE_MAX;
  // No exception may cross XNNPACK's frames.
  try {
    const auto packed = static_cast<PackedWeights*>(context)->findPlace(key->seed);
    return packed ? reinterpret_cast<size_t>(packed->data()) : SIZE_MAX;
  } catch (...) {
    return SIZE_MAX;
  }
}

// The caller holds mutex_.
std::optional<PackedPlace> PackedWeights::reserveSmall(size_t size) {
  if (groups_.empty() || groups_.back().size + roundedUp(size) > groups_.back().segment->size()) {
    // Most models have a few small packings, far less than a huge page.
    auto memory = PackedSegment::allocate(std::max(groupBytes_, roundedUp(size)),
                                          cache::SegmentWriter::kHugePage);
    if (!memory) return std::nullopt;
    groups_.push_back({std::move(*memory)});
  }
  Group& group = groups_.back();
  PackedPlace place{group.segment, group.size, size, 0};
  group.size += roundedUp(size);
  ++group.inProgress;
  return place;
}

// Notes that a packing in the segment is done; false if the segment is no group. The caller holds
// mutex_.
bool PackedWeights::leaveGroup(const std::shared_ptr<PackedSegment>& segment) {
  const auto group = std::ranges::find(groups_, segment, &Group::segment);
  if (group == groups_.end()) return false;
  --group->inProgress;
  return true;
}

// A group that is followed by another gets no more packings, so it can be published when those in
// progress are done. The caller holds mutex_.
std::optional<PackedWeights::Group> PackedWeights::takeFullGroup() {
  if (!onPacked_) return std::nullopt;
  const auto group = std::ranges::find(groups_, size_t{0}, &Group::inProgress);
  if (group == groups_.end() || group == groups_.end() - 1) return std::nullopt;
  Group full = std::move(*group);
  groups_.erase(group);
  full.segment->trim(full.size);
  return full;
}

void* PackedWeights::reserveSpace(void* context, size_t size) {
  try {
    return static_cast<PackedWeights*>(context)->reserve(size);
  } catch (...) {
    return nullptr;
  }
}

void* PackedWeights::reserve(size_t size) {
  if (currentPlace.packing == Packing::kMeasured) currentPlace.measured.size = size;
  if (currentPlace.packing == Packing::kPart) return currentPlace.parted->reserve(size);
  if (currentPlace.packing != Packing::kAllowed) return nullptr;
  bool isKnown = false;
  {
    const std::lock_guard lock(mutex_);
    isKnown = places_.contains(currentPlace.place);
    if (isSealed_ && !isKnown) return nullptr;
    if (!isKnown && size < kOwnSegment) {
      const auto place = reserveSmall(size);
      if (!place) return nullptr;
      reservations_[place->data()] = *place;
      return place->data();
    }
  }
  if (isKnown) {
    // lookUpOrInsert will point to the known bytes.
    return makeScratch(size);
  }
  auto memory = PackedSegment::allocate(size);
  if (!memory) return nullptr;
  uint8_t* const data = (*memory)->data();
  const std::lock_guard lock(mutex_);
  reservations_[data] = {std::move(*memory), 0, size, 0};
  return data;
}

// XNNPACK takes any result for an address. Where memory for the insertion is missing, the packed
// bytes stay where they are, reserved as long as this lives, and the operator uses them there.
size_t PackedWeights::lookUpOrInsert(void* context, const xnn_weights_cache_look_up_key* key,
                                     void* data, size_t size) {
  auto* self = static_cast<PackedWeights*>(context);
  try {
    return self->insert(key == nullptr ? 0 : key->seed, data, size);
  } catch (...) {
    self->hasAllPlaces_.store(false, std::memory_order_relaxed);
    if (Scratch* const scratch = std::exchange(currentPlace.scratch, nullptr)) {
      const std::lock_guard lock(self->mutex_);
      scratch->next = std::exchange(self->kept_, scratch);
    }
    return reinterpret_cast<size_t>(data);
  }
}

size_t PackedWeights::insert(uint32_t seed, void* data, size_t size) {
  // packParts() inserts the whole.
  if (currentPlace.packing == Packing::kPart) return reinterpret_cast<size_t>(data);
  std::shared_ptr<PackedSegment> own;
  std::optional<Group> full;
  uint8_t* address = nullptr;
  {
    const std::lock_guard lock(mutex_);
    // Operators that XNNPACK packs without a look-up come here for each context. The known packing
    // stays, and the new one, which has the same bytes, is dropped.
    const auto known = places_.find(currentPlace.place);
    const auto reservation = reservations_.find(static_cast<uint8_t*>(data));
    if (known != places_.end() && known->second.size == size) {
      if (reservation != reservations_.end()) {
        leaveGroup(reservation->second.segment);
        reservations_.erase(reservation);
      }
      dropScratch();
      // Convolutions that found their weights insert them again, as a null pointer.
      if (data != nullptr) repackedBytes_ += size;
      return reinterpret_cast<size_t>(known->second.data());
    }
    PackedPlace packed;
    if (reservation != reservations_.end()) {
      packed = reservation->second;
    } else {
      auto memory = PackedSegment::allocate(size);
      if (!memory) throw std::bad_alloc();
      std::memcpy((*memory)->data(), data, size);
      packed = {std::move(*memory), 0, size, 0};
    }
    packed.size = size;
    packed.seed = seed;
    address = packed.data();
    uint64_t& packedBytes = packedBytes_[currentPlace.kind];
    places_[currentPlace.place] = packed;
    // The place is inserted: nothing below throws.
    packedBytes += size;
    packedByThread += size;
    if (leaveGroup(packed.segment))
      full = takeFullGroup();
    else
      own = packed.segment;
    if (reservation != reservations_.end()) reservations_.erase(reservation);
    dropScratch();
  }
  base::logged("What follows a packing", [&] {
    if (full) onPacked_(full->segment, full->size);
    if (own == nullptr) return;
    if (currentPlace.source != nullptr && !isPrivate_)
      SharedPackings::instance().add(*currentPlace.source, {own, seed});
    if (onPacked_) onPacked_(own, own->size());
  });
  return reinterpret_cast<size_t>(address);
}

PackedWeights::Measured PackedWeights::measured() {
  return currentPlace.measured;
}

// Where anything fails, the place stays as it was, and the next creation call packs it.
void PackedWeights::packParts(WeightPlace place, const char* kind, const base::Sha256Digest* source,
                              size_t parts, const Measured& whole,
                              const std::function<bool(size_t)>& makePart) {
  if (whole.size < kOwnSegment || !whole.isLookedUp) return;
  auto writer = partStore_.start(whole.size);
  if (writer == nullptr) return;
  memory::Mapping buffer;
  {
    const std::lock_guard lock(mutex_);
    if (!partBuffers_.empty()) {
      buffer = std::move(partBuffers_.back());
      partBuffers_.pop_back();
    }
  }
  PartedSegment parted(std::move(writer), whole.size, std::move(buffer));
  for (size_t part = 0; part < parts; ++part) {
    const PlaceScope scope(place, kind, nullptr, Packing::kPart);
    currentPlace.parted = &parted;
    if (!makePart(part) || !parted.commit()) return;
  }
  const std::shared_ptr<PackedSegment> segment = parted.finish();
  if (segment == nullptr) return;
  partStore_.publish(segment, parted.takeWriter());
  {
    const std::lock_guard lock(mutex_);
    partBuffers_.push_back(parted.takeBuffer());
    uint64_t& packedBytes = packedBytes_[kind];
    if (!places_.try_emplace(place, PackedPlace{segment, 0, whole.size, whole.seed}).second) return;
    packedBytes += whole.size;
    packedByThread += whole.size;
  }
  if (source != nullptr && !isPrivate_)
    SharedPackings::instance().add(*source, {segment, whole.seed});
}

bool PackedWeights::isFinalized(void*) {
  return true;
}

void* PackedWeights::offsetToAddress(void*, size_t offset) {
  return reinterpret_cast<void*>(offset);
}

}  // namespace hearth::cpu
