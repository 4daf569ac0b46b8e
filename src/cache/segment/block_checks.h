// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/sha256.h"
#include "cache/identity/checked_blocks.h"
#include "cache/object/store_failure.h"

namespace hearth::cache {

// Called before each block, when all blocks before it were right. False ends the check there.
using BlockProgress = std::function<bool(uint64_t block)>;

// A segment whose blocks are to be compared with their digests, in order.
struct BlockCheck {
  // Names these bytes, in the file as it was found, during this boot. A start that finds dozens of
  // segments has no need of it.
  std::function<base::Sha256Digest()> id;
  uint64_t blocks = 0;
  // Compares the blocks from `from` on. Returns no error when `progress` ended it.
  std::function<StoreStatus(uint64_t from, const BlockProgress& progress)> run;
  // Called once: when all blocks were right, or with the error that ended the check.
  std::function<void(const StoreStatus&)> end;

  std::atomic<uint64_t> right = 0;  // so many of the first blocks, as far as this process knows
  std::atomic<bool> isOver = false;
};

// The segments that this process has found and nobody has checked to the end. The position of a
// check is remembered from time to time, so that the next process goes on from there: even
// processes too short for a whole check complete it together. Thread-safe.
class BlockChecks {
 public:
  // Remembers how many of the first blocks of a check are right; UINT64_MAX = all.
  struct Memory {
    // Whether what is remembered outlives the process. If not, the other functions are never
    // called.
    std::function<bool()> isLasting;
    // For each of several checks at once, since asking takes longer than the answer.
    std::function<std::vector<uint64_t>(std::span<const base::Sha256Digest> ids)> recall;
    std::function<void(std::span<const CheckedBlocks> checks)> remember;
  };
  explicit BlockChecks(Memory memory) : memory_(std::move(memory)) {}

  // True when the caller must arrange for runAll(): false once an earlier call has returned true
  // and runAll() has not yet begun.
  bool add(std::shared_ptr<BlockCheck> check);
  // Adds all checks that `parent` has not finished, for a forked child, which lacks the thread that
  // was to do them. Result as add().
  bool inherit(BlockChecks& parent);

  // Runs all checks that were added, until `isStopping` returns true.
  void runAll(const std::function<bool()>& isStopping);

  // Continues the checks on the calling thread: ends after `most` blocks, or once `time` is over
  // and `least` blocks are done. Where nothing is remembered, so that each process would begin
  // anew, checks `sample` blocks from a random place on instead.
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
  void recall(std::span<const std::shared_ptr<BlockCheck>> checks,
              std::span<const base::Sha256Digest> ids) const;
  static void inspect(BlockCheck& check, const std::function<bool()>& mayGoOn,
                      const std::function<void(uint64_t right)>& remember);
  static void sample(const Checks& checks, uint64_t blocks);

  const Memory memory_;
  base::Mutex mutex_;
  Checks checks_;           // guarded by mutex_
  bool isAwaited_ = false;  // true while a runAll() is to come; guarded by mutex_
};

}  // namespace hearth::cache
