// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/packed_weights.h"

#include <hearth_xnnpack.h>

namespace hearth::cpu {
namespace {

// Kernels load packed weights with aligned 64-byte instructions.
constexpr size_t kAlignment = 64;
constexpr size_t kChunkSize = size_t{1} << 20;
constexpr size_t kLargeSize = size_t{256} << 10;

struct CurrentPlace {
  WeightPlace place;
  const char* kind = "";
};
thread_local CurrentPlace currentPlace;

}  // namespace

PackedWeights::PlaceScope::PlaceScope(PackedWeights*, WeightPlace place, const char* kind) {
  currentPlace = {place, kind};
}

PackedWeights::PlaceScope::~PlaceScope() { currentPlace = {}; }

PackedWeights::PackedWeights() : provider_(new xnn_weights_cache_provider{}) {
  provider_->context = this;
  provider_->look_up = &lookUp;
  provider_->reserve_space = &reserveSpace;
  provider_->look_up_or_insert = &lookUpOrInsert;
  provider_->is_finalized = &isFinalized;
  provider_->offset_to_addr = &offsetToAddress;
  // XNNPACK never calls delete_cache on a provider that is not its own.
  provider_->delete_cache = [](void*) { return xnn_status_success; };
}

PackedWeights::~PackedWeights() { delete provider_; }

Result<const uint8_t*> PackedWeights::pack(WeightPlace place, const char* kind, size_t size,
                                           const std::function<void(uint8_t*)>& fill) {
  const PlaceScope scope(this, place, kind);
  size_t found = lookUp(this, nullptr);
  if (found == SIZE_MAX) {
    auto* data = static_cast<uint8_t*>(reserveSpace(this, size));
    if (data == nullptr)
      return fail(ErrorCode::kOutOfMemory, "There is no memory for {} bytes of packed weights.",
                  size);
    fill(data);
    found = lookUpOrInsert(this, nullptr, data, size);
  }
  return reinterpret_cast<const uint8_t*>(found);
}

std::map<std::string, uint64_t> PackedWeights::packedBytes() const {
  std::lock_guard lock(mutex_);
  return packedBytes_;
}

size_t PackedWeights::sizeOf(WeightPlace place) const {
  std::lock_guard lock(mutex_);
  const auto it = segments_.find(place);
  return it == segments_.end() ? 0 : it->second.size;
}

// What XNNPACK calls an offset is the address itself: it is handed back to offset_to_addr only.
size_t PackedWeights::lookUp(void* context, const xnn_weights_cache_look_up_key*) {
  auto* self = static_cast<PackedWeights*>(context);
  std::lock_guard lock(self->mutex_);
  const auto it = self->segments_.find(currentPlace.place);
  if (it == self->segments_.end()) return SIZE_MAX;
  return reinterpret_cast<size_t>(it->second.data);
}

uint8_t* PackedWeights::allocateSmall(size_t size) {
  const size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  if (chunks_.empty() || chunkUsed_ + rounded > chunks_.back().size()) {
    auto chunk = memory::Mapping::anonymous(kChunkSize);
    if (!chunk) return nullptr;
    chunks_.push_back(std::move(*chunk));
    chunkUsed_ = 0;
  }
  uint8_t* data = chunks_.back().data() + chunkUsed_;
  chunkUsed_ += rounded;
  return data;
}

void* PackedWeights::reserveSpace(void* context, size_t size) {
  auto* self = static_cast<PackedWeights*>(context);
  Reservation reservation;
  reservation.size = size;
  uint8_t* data = nullptr;
  if (size >= kLargeSize) {
    auto mapping = memory::Mapping::anonymous(size);
    if (!mapping) return nullptr;
    data = mapping->data();
    reservation.mapping = std::move(*mapping);
  }
  std::lock_guard lock(self->mutex_);
  if (data == nullptr) data = self->allocateSmall(size);
  if (data != nullptr) self->reservations_[data] = std::move(reservation);
  return data;
}

size_t PackedWeights::lookUpOrInsert(void* context, const xnn_weights_cache_look_up_key*,
                                     void* data, size_t size) {
  auto* self = static_cast<PackedWeights*>(context);
  std::lock_guard lock(self->mutex_);
  // Operations that XNNPACK packs without looking first come here again for each context: the
  // first packing stays, the new one (a scratch) is given back.
  const auto reservation = self->reservations_.find(static_cast<uint8_t*>(data));
  const auto known = self->segments_.find(currentPlace.place);
  if (known != self->segments_.end()) {
    if (reservation != self->reservations_.end()) {
      const bool isLast =
          !self->chunks_.empty() && reservation->second.mapping.data() == nullptr &&
          static_cast<uint8_t*>(data) >= self->chunks_.back().data() &&
          static_cast<uint8_t*>(data) +
                  (reservation->second.size + kAlignment - 1) / kAlignment * kAlignment ==
              self->chunks_.back().data() + self->chunkUsed_;
      if (isLast)
        self->chunkUsed_ = static_cast<size_t>(static_cast<uint8_t*>(data) -
                                               self->chunks_.back().data());
      self->reservations_.erase(reservation);
    }
    return reinterpret_cast<size_t>(known->second.data);
  }
  if (data == nullptr || reservation == self->reservations_.end()) return SIZE_MAX;
  if (reservation->second.mapping.data() != nullptr)
    self->large_.push_back(std::move(reservation->second.mapping));
  self->reservations_.erase(reservation);
  self->segments_[currentPlace.place] = {static_cast<uint8_t*>(data), size};
  self->packedBytes_[currentPlace.kind] += size;
  return reinterpret_cast<size_t>(data);
}

bool PackedWeights::isFinalized(void*) { return true; }

void* PackedWeights::offsetToAddress(void*, size_t offset) {
  return reinterpret_cast<void*>(offset);
}

}  // namespace hearth::cpu
