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
  HEARTH_ASSIGN(Block block, takeLocked(arenaBytes, nullptr));
  idle_.push_back(std::move(block));
  return {};
}

Result<ActivationMemory::Block> ActivationMemory::take(uint64_t arenaBytes, const void* last) {
  const std::lock_guard lock(mutex_);
  return takeLocked(arenaBytes, last);
}

void ActivationMemory::giveBack(Block block) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(block));
}

void ActivationMemory::populate() const {
  std::vector<Block> idle;
  {
    const std::lock_guard lock(mutex_);
    idle = idle_;
  }
  for (const Block& block : idle)
    ::madvise(block.arena->data(), block.arena->size(), MADV_POPULATE_WRITE);
}

Result<ActivationMemory::Block> ActivationMemory::takeLocked(uint64_t arenaBytes,
                                                             const void* last) {
  const auto sizeOf = [](const Block& block) {
    return block.arena->size();
  };
  // The smallest one that fits, or else the largest one.
  auto taken = idle_.end();
  auto own = idle_.end();
  for (auto block = idle_.begin(); block != idle_.end(); ++block) {
    if (block->arena->data() == last && sizeOf(*block) >= arenaBytes) own = block;
    if (taken == idle_.end()) {
      taken = block;
      continue;
    }
    const bool fits = sizeOf(*block) >= arenaBytes;
    const bool isLarger = sizeOf(*block) > sizeOf(*taken);
    if (sizeOf(*taken) < arenaBytes ? isLarger : (fits && !isLarger)) taken = block;
  }
  if (own != idle_.end() && sizeOf(*own) / kMuchSmaller <= sizeOf(*taken)) taken = own;
  Block block;
  if (taken != idle_.end()) block = *taken;
  if (block.arena == nullptr || sizeOf(block) < arenaBytes) {
    HEARTH_ASSIGN(block.arena, Area::make(arenaBytes));
    largest_ = std::max(largest_, arenaBytes);
  }
  if (taken != idle_.end()) idle_.erase(taken);
  return block;
}

}  // namespace hearth::cpu
