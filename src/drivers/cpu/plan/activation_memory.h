// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "graph/model.h"
#include "memory/mapping.h"

namespace hearth::cpu {

// The memory that executions compute in: activations and scratch. Models of one file share it, such
// as the signatures of a language model, which run one after the other: there is as much of it as
// the executions that run at once need, however many models there are. Thread-safe.
class ActivationMemory {
 public:
  // Memory with its room in the budget of the thread that has made it (memory::reserveRoom()).
  class Area {
   public:
    static Result<std::shared_ptr<const Area>> make(uint64_t bytes);

    uint8_t* data() const { return mapping_.data(); }
    uint64_t size() const { return mapping_.size(); }

   private:
    std::shared_ptr<void> room_;
    memory::Mapping mapping_;
  };

  // What one execution at a time has.
  struct Block {
    std::shared_ptr<const Area> arena;    // of the activations
    std::shared_ptr<const Area> scratch;  // null until a kernel needs some
  };
  using OwnBlock = std::unique_ptr<Block>;

  ActivationMemory() = default;
  ~ActivationMemory() { delete recent_.load(); }
  ActivationMemory(const ActivationMemory&) = delete;
  ActivationMemory& operator=(const ActivationMemory&) = delete;

  // The memory that models share whose constants lie in the same pool as this one's; for a model
  // without pools one of its own. It lives as long as any of them has it.
  static std::shared_ptr<ActivationMemory> of(const graph::Model& model);

  // Makes sure that there is a block with such an arena, so that an execution of a model need not
  // fail for want of it. Errors: kOutOfMemory, and those of the budget.
  Status reserve(uint64_t arenaBytes);

  // A block for one execution, whose arena has at least so many bytes. If possible that whose arena
  // is at `last`. What it holds is left over from other executions. Errors as reserve().
  Result<OwnBlock> take(uint64_t arenaBytes, const void* last);
  // The block that was given back last, if its arena is at `last` and has so many bytes; else null,
  // and take() is to be called.
  OwnBlock takeRecent(uint64_t arenaBytes, const void* last) {
    if (hasIdle_.load(std::memory_order_relaxed)) return nullptr;
    OwnBlock recent(recent_.exchange(nullptr, std::memory_order_acq_rel));
    if (recent == nullptr) return nullptr;
    if (recent->arena->data() == last && recent->arena->size() >= arenaBytes) return recent;
    giveBack(std::move(recent));
    return nullptr;
  }
  void giveBack(OwnBlock block) {
    Block* none = nullptr;
    if (recent_.compare_exchange_strong(none, block.get(), std::memory_order_acq_rel))
      static_cast<void>(block.release());
    else
      keep(std::move(block));
  }

  // Gives pages to the arenas that no execution has, so that the first one need not wait for them.
  void populate();

 private:
  Result<OwnBlock> takeLocked(uint64_t arenaBytes, const void* last);
  // Beside another one that was given back last.
  void keep(OwnBlock block);
  void addIdle(OwnBlock block);
  // Moves the block in recent_, if there is one, to the idle ones.
  void collectRecent();

  // The block that was given back last. A model that runs again and again takes it without a lock,
  // which would take a fifth of the smallest models' time.
  std::atomic<Block*> recent_{nullptr};
  std::atomic<bool> hasIdle_{false};  // idle_ has some

  base::Mutex mutex_;
  std::vector<OwnBlock> idle_;  // beside recent_; the last one was used last
  uint64_t largest_ = 0;        // bytes of the largest arena
};

}  // namespace hearth::cpu
