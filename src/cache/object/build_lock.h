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

// Says who builds a segment, across threads and processes: an open-file-description lock on one
// byte of the store's build.lock, and a table for the threads of this process, which share that
// lock. A builder that dies releases it. Thread-safe.
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
    void release();

   private:
    friend class BuildLock;
    Hold(std::shared_ptr<BuildLock> owner, const SegmentKey& key)
        : owner_(std::move(owner)), key_(key) {}
    std::shared_ptr<BuildLock> owner_;
    SegmentKey key_;
  };

  // Among the threads of this process only.
  static std::shared_ptr<BuildLock> inProcess();
  // Null when the lock file cannot be had.
  static std::shared_ptr<BuildLock> open(const StoreFolder& folder);

  enum class Outcome {
    kHeld,      // the caller builds
    kAppeared,  // `appeared` said so
    kGaveUp,    // nothing moved in the store for `patience`, or locks do not work here
  };
  // Waits for the key. `appeared` is asked now and then, without a lock held; true ends the wait.
  Outcome acquire(const SegmentKey& key, std::chrono::nanoseconds patience,
                  const std::function<bool()>& appeared, Hold& hold);

  // Tells those who wait, in all processes, that this one is getting on.
  void noteProgress();

  // The lock that garbage collection takes; false when another process has it. Released by
  // unlockCollection.
  bool tryLockCollection();
  void unlockCollection();

  // In a forked child: lets the parent's locks go, since the child must not keep them alive.
  void abandonInChild();

 private:
  explicit BuildLock(base::Descriptor file) : file_(std::move(file)) {}
  bool setLock(uint64_t start, int type, int& error);
  int64_t progress() const;

  mutable base::Mutex mutex_;
  base::Condition changed_;
  base::Descriptor file_;                    // none = only threads of this process
  std::atomic<int64_t> progress_ = 0;        // counts for want of a file
  std::unordered_set<SegmentKey> building_;  // by threads of this process, or waited for by one
};

}  // namespace hearth::cache
