// SPDX-License-Identifier: Apache-2.0
#include "cache/object/build_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/fault.h"
#include "base/wall_clock.h"

namespace hearth::cache {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr char kFile[] = "build.lock";
constexpr uint64_t kCollection = uint64_t{1} << 62;  // past every key's byte
constexpr microseconds kShortestPause{200};
constexpr microseconds kLongestPause{5000};

// Two keys that share a byte merely wait for each other.
uint64_t byteOf(const SegmentKey& key) {
  return key.prefix() >> 2;
}

}  // namespace

std::shared_ptr<BuildLock> BuildLock::inProcess() {
  return std::shared_ptr<BuildLock>(new BuildLock(base::Descriptor()));
}

std::shared_ptr<BuildLock> BuildLock::open(const StoreFolder& folder) {
  if (!folder.isWritable()) return nullptr;
  base::Descriptor file = openTrusted(folder.root(), kFile, O_RDWR | O_CREAT);
  if (!file.valid()) return nullptr;
  return std::shared_ptr<BuildLock>(new BuildLock(std::move(file)));
}

BuildLock::Hold& BuildLock::Hold::operator=(Hold&& other) noexcept {
  release();
  owner_ = std::move(other.owner_);
  key_ = other.key_;
  return *this;
}

void BuildLock::Hold::noteProgress() {
  if (owner_ != nullptr) owner_->noteProgress();
}

void BuildLock::Hold::release() {
  if (owner_ == nullptr) return;
  {
    const std::lock_guard lock(owner_->mutex_);
    int error;
    owner_->setLock(byteOf(key_), F_UNLCK, error);
    owner_->building_.erase(key_);
  }
  owner_->changed_.notify_all();
  owner_.reset();
}

bool BuildLock::setLock(uint64_t start, int type, int& error) {
  error = 0;
  if (!file_.valid()) return true;
  struct flock lock{};
  lock.l_type = static_cast<short>(type);
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(start);
  lock.l_len = 1;
  const int result = retried([&] { return ::fcntl(file_.get(), F_OFD_SETLK, &lock); });
  error = result == 0 ? 0 : errno;
  return result == 0;
}

int64_t BuildLock::progress() const {
  if (!file_.valid()) return progress_;
  struct stat status;
  if (::fstat(file_.get(), &status) != 0) return 0;
  return base::toNanoseconds(status.st_mtim);
}

void BuildLock::noteProgress() {
  if (file_.valid())
    ::futimens(file_.get(), nullptr);
  else
    ++progress_;
}

BuildLock::Outcome BuildLock::acquire(const SegmentKey& key, std::chrono::nanoseconds patience,
                                      const std::function<bool()>& appeared, Hold& hold) {
  std::unique_lock lock(mutex_);
  int64_t lastProgress = progress();
  Clock::time_point lastMove = Clock::now();
  const auto isHopeless = [&] {
    const int64_t current = progress();
    if (current != lastProgress) {
      lastProgress = current;
      lastMove = Clock::now();
    }
    return Clock::now() - lastMove >= patience;
  };
  while (building_.contains(key)) {
    changed_.wait_until(lock, Clock::now() + milliseconds(20));
    if (isHopeless()) return Outcome::kGaveUp;
  }
  // Gives the key back on every way out, unless the caller got it.
  struct Waiting {
    BuildLock& owner;
    std::unique_lock<base::Mutex>& lock;
    const SegmentKey& key;
    bool isHeld = false;
    ~Waiting() {
      if (isHeld) return;
      if (!lock.owns_lock()) lock.lock();
      owner.building_.erase(key);
      owner.changed_.notify_all();
    }
  } waiting{*this, lock, key};
  building_.insert(key);
  microseconds pause = kShortestPause;
  for (;;) {
    int error;
    const bool isLocked = setLock(byteOf(key), F_WRLCK, error);
    if (!isLocked && error != EAGAIN && error != EACCES) return Outcome::kGaveUp;
    if (isLocked) {
      hold = Hold(shared_from_this(), key);
      waiting.isHeld = true;
    }
    // The last builder may have published after the caller looked and before it got the lock.
    lock.unlock();
    const bool isThere = appeared();
    if (isLocked) {
      if (isThere) hold.release();
      return isThere ? Outcome::kAppeared : Outcome::kHeld;
    }
    if (!isThere) std::this_thread::sleep_for(pause);
    pause = std::min(pause * 3 / 2, kLongestPause);
    lock.lock();
    if (isThere || isHopeless()) return isThere ? Outcome::kAppeared : Outcome::kGaveUp;
  }
}

bool BuildLock::tryLockCollection() {
  const std::lock_guard lock(mutex_);
  int error;
  return setLock(kCollection, F_WRLCK, error);
}

void BuildLock::unlockCollection() {
  const std::lock_guard lock(mutex_);
  int error;
  setLock(kCollection, F_UNLCK, error);
}

void BuildLock::abandonInChild() {
  file_.reset();
}

}  // namespace hearth::cache
