// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_set>

#include "base/descriptor.h"
#include "base/mutex.h"
#include "cache/object/store_folder.h"
#include "cache/object/store_key.h"

namespace hearth::cache {

// Decides who builds a segment, among threads and processes. A builder holds an
// open-file-description lock on one byte of the store's build.lock; the threads of this process
// share that lock and take turns by a table. The kernel releases the lock of a builder that dies.
// Thread-safe.
class BuildLock : public std::enable_shared_from_this<BuildLock> {
 public:
  // Holds one key; releases it when destroyed. Move-only.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept : owner_(std::move(other.owner_)), key_(other.key_) {}
    Hold& operator=(Hold&& other) noexcept;
    ~Hold() { release(); }
    explicit operator bool() const { return owner_ != nullptr; }
    // Restarts the patience of all who wait for the lock. Does nothing when nothing is held.
    void noteProgress();
    void release();

   private:
    friend class BuildLock;
    Hold(std::shared_ptr<BuildLock> owner, const SegmentKey& key)
        : owner_(std::move(owner)), key_(key) {}
    std::shared_ptr<BuildLock> owner_;
    SegmentKey key_;
  };

  // A lock among the threads of this process only.
  static std::shared_ptr<BuildLock> inProcess();
  // Null when the lock file cannot be opened.
  static std::shared_ptr<BuildLock> open(const StoreFolder& folder);

  enum class Outcome {
    kHeld,      // the caller may build
    kAppeared,  // `appeared` returned true
    kGaveUp,    // no builder made progress for `patience`, or locks do not work here
  };
  // Waits for the key. Calls `appeared` from time to time, with no lock of its own held; true ends
  // the wait.
  Outcome acquire(const SegmentKey& key, std::chrono::nanoseconds patience,
                  const std::function<bool()>& appeared, Hold& hold);

  // Restarts the patience of all waiters, in all processes: a builder calls it as it gets on.
  void noteProgress();

  // Takes the lock for garbage collection; false when another process holds it.
  bool tryLockCollection();
  void unlockCollection();

  // In a forked child: closes the lock file, so that the child does not keep the parent's locks
  // alive.
  void abandonInChild();

 private:
  explicit BuildLock(base::Descriptor file) : file_(std::move(file)) {}
  bool setLock(uint64_t start, int type, int& error);
  int64_t progress() const;

  mutable base::Mutex mutex_;
  base::Condition changed_;
  base::Descriptor file_;                    // none = only threads of this process
  std::atomic<int64_t> progress_ = 0;        // used where there is no file
  std::unordered_set<SegmentKey> building_;  // keys that a thread of this process builds or awaits
};

}  // namespace hearth::cache
