// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/sha256.h"
#include "cache/object/store_failure.h"

namespace hearth::cache {

// Asked before each block, all before which were right; false ends the check there.
using BlockProgress = std::function<bool(uint64_t block)>;

// Blocks that are to be compared with their digests, in their order.
struct BlockCheck {
  base::Sha256Digest id{};  // of these bytes, in this file as it is now, during this boot
  uint64_t blocks = 0;
  // Compares the blocks from `from` on. No error when `progress` ended it.
  std::function<StoreStatus(uint64_t from, const BlockProgress& progress)> run;
  // Called once: when all were right, or with the error that ended the check.
  std::function<void(const StoreStatus&)> end;

  std::atomic<uint64_t> right = 0;  // of the first ones, as far as this process knows
  std::atomic<bool> isOver = false;
};

// What one process has found and nobody has checked to the end. How far a check came is remembered
// now and then, so that it goes on from there in whichever process comes next, and no process is
// too short for it to get done. Thread-safe.
class BlockChecks {
 public:
  // How many blocks of an identity are known to be right: all of them where that is UINT64_MAX.
  struct Memory {
    // Whether what is remembered outlives the process. Nothing else is called where it does not.
    std::function<bool()> isLasting;
    std::function<uint64_t(const base::Sha256Digest& id)> recall;
    // `isAll`: there are no more.
    std::function<void(const base::Sha256Digest& id, uint64_t blocks, bool isAll)> remember;
  };
  explicit BlockChecks(Memory memory) : memory_(std::move(memory)) {}

  // True when runAll() is to be called some time, which no caller of add() was told since the last.
  bool add(std::shared_ptr<BlockCheck> check);
  // The same of all that `parent` has not done: for a forked child, which lacks the thread that was
  // to do it.
  bool inherit(BlockChecks& parent);

  // Does all that were added, until `isStopping` says so.
  void runAll(const std::function<bool()>& isStopping);

  // Goes on with them here, by `most` blocks or, when that takes longer, for `time` and by `least`.
  // Where nothing lasts, and each process would begin anew: `sample` blocks from a random place on.
  struct Limits {
    uint64_t least = 0;
    uint64_t most = 0;
    uint64_t sample = 0;
    std::chrono::nanoseconds time{};
  };
  void runPart(const Limits& limits);

 private:
  using Checks = std::vector<std::shared_ptr<BlockCheck>>;
  Checks pending();
  void inspect(BlockCheck& check, const std::function<bool()>& mayGoOn);
  static void sample(const Checks& checks, uint64_t blocks);

  const Memory memory_;
  base::Mutex mutex_;
  Checks checks_;           // guarded by mutex_
  bool isAwaited_ = false;  // guarded by mutex_
};

}  // namespace hearth::cache
