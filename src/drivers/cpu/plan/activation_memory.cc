// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/activation_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "base/immortal.h"
#include "memory/budget.h"

namespace hearth::cpu {
namespace {

// An execution leaves its last arena to others where another one fits that is so much smaller: the
// large one may be wanted at the same time, and would be made twice.
constexpr uint64_t kMuchSmaller = 4;

// What models in use share, by the address of their first pool.
struct Shared {
  base::Mutex mutex;
  std::map<const memory::Pool*, std::weak_ptr<ActivationMemory>> memories;
};

constinit base::Immortal<Shared> shared;

}  // namespace

Result<std::shared_ptr<const ActivationMemory::Area>> ActivationMemory::Area::make(uint64_t bytes) {
  const auto area = std::make_shared<Area>();
  HEARTH_ASSIGN(area->room_, memory::reserveRoom(bytes));
  HEARTH_ASSIGN(area->mapping_, memory::Mapping::anonymous(bytes));
  return area;
}

std::shared_ptr<ActivationMemory> ActivationMemory::of(const graph::Model& model) {
  if (model.pools.empty()) return std::make_shared<ActivationMemory>();
  auto& [mutex, memories] = shared.get();
  const std::lock_guard lock(mutex);
  std::erase_if(memories, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<ActivationMemory>& kept = memories[model.pools.front().get()];
  std::shared_ptr<ActivationMemory> memory = kept.lock();
  if (memory == nullptr) kept = memory = std::make_shared<ActivationMemory>();
  return memory;
}

Status ActivationMemory::reserve(uint64_t arenaBytes) {
  const std::lock_guard lock(mutex_);
  if (arenaBytes <= largest_) return {};
  HEARTH_ASSIGN(OwnBlock block, takeLocked(arenaBytes, nullptr));
  addIdle(std::move(block));
  return {};
}

Result<ActivationMemory::OwnBlock> ActivationMemory::take(uint64_t arenaBytes, const void* last) {
  if (OwnBlock recent = takeRecent(arenaBytes, last)) return recent;
  const std::lock_guard lock(mutex_);
  return takeLocked(arenaBytes, last);
}

void ActivationMemory::keep(OwnBlock block) {
  const std::lock_guard lock(mutex_);
  addIdle(std::move(block));
}

void ActivationMemory::addIdle(OwnBlock block) {
  idle_.push_back(std::move(block));
  hasIdle_.store(true, std::memory_order_relaxed);
}

void ActivationMemory::collectRecent() {
  if (OwnBlock recent(recent_.exchange(nullptr, std::memory_order_acq_rel)); recent != nullptr)
    addIdle(std::move(recent));
}

void ActivationMemory::populate() {
  std::vector<std::shared_ptr<const Area>> arenas;
  {
    const std::lock_guard lock(mutex_);
    collectRecent();
    for (const OwnBlock& block : idle_) arenas.push_back(block->arena);
  }
  for (const auto& arena : arenas) ::madvise(arena->data(), arena->size(), MADV_POPULATE_WRITE);
}

Result<ActivationMemory::OwnBlock> ActivationMemory::takeLocked(uint64_t arenaBytes,
                                                                const void* last) {
  collectRecent();
  const auto sizeOf = [](const OwnBlock& block) {
    return block->arena->size();
  };
  // The smallest one that fits, or else the largest one.
  auto taken = idle_.end();
  auto own = idle_.end();
  for (auto block = idle_.begin(); block != idle_.end(); ++block) {
    if ((*block)->arena->data() == last && sizeOf(*block) >= arenaBytes) own = block;
    if (taken == idle_.end()) {
      taken = block;
      continue;
    }
    const bool fits = sizeOf(*block) >= arenaBytes;
    const bool isLarger = sizeOf(*block) > sizeOf(*taken);
    if (sizeOf(*taken) < arenaBytes ? isLarger : (fits && !isLarger)) taken = block;
  }
  if (own != idle_.end() && sizeOf(*own) / kMuchSmaller <= sizeOf(*taken)) taken = own;
  if (taken == idle_.end() || sizeOf(*taken) < arenaBytes) {
    HEARTH_ASSIGN(std::shared_ptr<const Area> arena, Area::make(arenaBytes));
    largest_ = std::max(largest_, arenaBytes);
    if (taken == idle_.end()) return std::make_unique<Block>(std::move(arena), nullptr);
    (*taken)->arena = std::move(arena);
  }
  OwnBlock block = std::move(*taken);
  idle_.erase(taken);
  hasIdle_.store(!idle_.empty(), std::memory_order_relaxed);
  return block;
}

}  // namespace hearth::cpu
