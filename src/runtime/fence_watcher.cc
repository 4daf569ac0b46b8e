// SPDX-License-Identifier: Apache-2.0
#include "runtime/fence_watcher.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/fence_order.h"
#include "base/helper_thread.h"

namespace hearth::runtime {
namespace {

Status statusOf(uint32_t events) {
  if ((events & (POLLERR | POLLNVAL)) != 0)
    return fail(ErrorCode::kOpFailed, "The fence that is waited for reports an error.");
  return {};
}

class FenceWatcher {
 public:
  Result<std::shared_ptr<Event>> watch(base::Descriptor fence) {
    const std::lock_guard lock(mutex_);
    HEARTH_TRY(start());
    const uint64_t id = nextId_++;
    Entry entry{std::move(fence), std::make_shared<Event>()};
    const std::shared_ptr<Event> event = entry.event;
    epoll_event wanted{};
    wanted.events = EPOLLIN | EPOLLONESHOT;
    wanted.data.u64 = id;
    const int descriptor = entry.fence.get();
    const auto it = entries_.emplace(id, std::move(entry)).first;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &wanted) != 0) {
      const int error = errno;
      entries_.erase(it);
      if (error == EPERM || error == EBADF)
        return fail(ErrorCode::kBadData, "The descriptor {} is no fence: it cannot be polled.",
                    descriptor);
      return std::unexpected(base::errnoError(error, "Watching a fence"));
    }
    return event;
  }

 private:
  struct Entry {
    base::Descriptor fence;
    std::shared_ptr<Event> event;
  };

  // The caller holds mutex_.
  Status start() {
    if (isRunning_) return {};
    epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_.valid()) return std::unexpected(base::errnoError(errno, "Making an epoll object"));
    std::thread thread =
        base::startHelperThread("hearth-fences", [this] { run(); }, base::Processors::kOfProcess);
    if (!thread.joinable())
      return fail(ErrorCode::kIo, "No thread can be started to watch fences.");
    thread.detach();
    isRunning_ = true;
    return {};
  }

  void run() {
    while (true) {
      epoll_event ready{};
      if (::epoll_wait(epoll_.get(), &ready, 1, -1) != 1) continue;
      std::shared_ptr<Event> event;
      {
        const std::lock_guard lock(mutex_);
        const auto it = entries_.find(ready.data.u64);
        if (it == entries_.end()) continue;
        event = std::move(it->second.event);
        // Closing it would not remove it while other descriptors refer to the same open file.
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, it->second.fence.get(), nullptr);
        entries_.erase(it);
      }
      base::afterFindingFenceSignalled();
      event->complete(statusOf(ready.events));
    }
  }

  std::mutex mutex_;
  base::Descriptor epoll_;
  std::map<uint64_t, Entry> entries_;
  uint64_t nextId_ = 1;
  bool isRunning_ = false;
};

// One watcher for each process, never destroyed. A forked child, which has no threads, makes its
// own.
FenceWatcher& sharedWatcher() {
  struct Owned {
    pid_t process;
    FenceWatcher watcher;
  };
  static std::atomic<Owned*> current = nullptr;
  Owned* seen = current.load(std::memory_order_acquire);
  while (seen == nullptr || seen->process != getpid()) {
    auto* fresh = new Owned{getpid(), {}};
    if (current.compare_exchange_strong(seen, fresh, std::memory_order_acq_rel))
      return fresh->watcher;
    delete fresh;
  }
  return seen->watcher;
}

}  // namespace

Result<std::shared_ptr<Event>> watchFence(base::Descriptor fence) {
  pollfd now{fence.get(), POLLIN, 0};
  if (::poll(&now, 1, 0) == 1) {
    if ((now.revents & POLLNVAL) != 0)
      return fail(ErrorCode::kBadData, "The descriptor {} of a fence is closed.", fence.get());
    base::afterFindingFenceSignalled();
    auto event = std::make_shared<Event>();
    event->complete(statusOf(static_cast<uint32_t>(now.revents)));
    return event;
  }
  return sharedWatcher().watch(std::move(fence));
}

}  // namespace hearth::runtime
