// SPDX-License-Identifier: Apache-2.0
#include "ipc/host_link.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "base/caught.h"
#include "base/log.h"

namespace hearth::ipc {
namespace {

constexpr std::chrono::milliseconds kFirstPause{10};
constexpr unsigned kMostDoublings = 8;
constexpr std::chrono::milliseconds kLongestPause{2000};
constexpr std::chrono::milliseconds kLongestWait{100};

}  // namespace

HostLink::HostLink(std::string name, HostOpener open)
    : name_(std::move(name)), open_(std::move(open)) {}

HostLink::~HostLink() {
  leaveForkRegistry();
}

Result<std::shared_ptr<HostLink>> HostLink::create(std::string name, HostOpener open) {
  std::shared_ptr<HostLink> link(new HostLink(std::move(name), std::move(open)));
  HEARTH_ASSIGN(link->session_, link->start());
  link->device_ = link->session_->device();
  const std::lock_guard held(base::ForkAware::registryMutex());
  link->joinForkRegistry(held);
  return link;
}

void HostLink::renewInChild() {
  if (session_ != nullptr) session_->leaveToParent();
}

std::shared_ptr<Session> HostLink::alive() const {
  return session_ != nullptr && !session_->isDead() ? session_ : nullptr;
}

std::shared_ptr<Session> HostLink::sessionIfThere() {
  const std::lock_guard lock(mutex_);
  return alive();
}

Result<std::shared_ptr<Session>> HostLink::session() {
  std::unique_lock lock(mutex_);
  if (auto session = alive()) return session;
  starting_.take(lock);
  if (auto session = alive()) {
    starting_.give();
    return session;
  }
  const std::shared_ptr<Session> gone = std::move(session_);
  lock.unlock();
  if (gone != nullptr) {
    base::logWarn("The host of the device {} has ended and is started again.", name_);
    failures_ = gone->hasServed() ? 0 : failures_ + 1;
  }
  auto started = base::caught([&]() -> Result<std::shared_ptr<Session>> {
    HEARTH_TRY(waitForPause());
    return start();
  });
  lock.lock();
  if (started) {
    session_ = *started;
    restarts_.fetch_add(1, std::memory_order_relaxed);
  }
  starting_.give();
  if (!started)
    return fail(ErrorCode::kDeadObject, "The host of the device {} cannot be started again: {}",
                name_, started.error().toString());
  return started;
}

Status HostLink::waitForPause() {
  const auto rest = nextStart_ - Clock::now();
  if (rest > kLongestWait)
    return fail(ErrorCode::kDeadObject, "{} starts have failed; the next one is due in {} ms.",
                failures_, std::chrono::ceil<std::chrono::milliseconds>(rest).count());
  if (rest > Clock::duration::zero()) std::this_thread::sleep_for(rest);
  return {};
}

Result<std::shared_ptr<Session>> HostLink::start() {
  const auto pause =
      failures_ == 0
          ? std::chrono::milliseconds(0)
          : std::min(kFirstPause * (1 << std::min(failures_ - 1, kMostDoublings)), kLongestPause);
  auto started = base::caught([&]() -> Result<std::shared_ptr<Session>> {
    HEARTH_ASSIGN(HostConnection connection, open_());
    HEARTH_ASSIGN(auto session, Session::open(std::move(connection)));
    if (session->device().name != name_)
      return fail(ErrorCode::kBadData, "The host of the device {} has the device {}.", name_,
                  session->device().name);
    return session;
  });
  if (!started) ++failures_;
  nextStart_ = Clock::now() + pause;
  return started;
}

uint32_t HostLink::addBuffer(const std::shared_ptr<Session>& session, uint64_t object) {
  static constinit std::atomic<uint32_t> lastToken = 0;
  const std::lock_guard lock(bufferMutex_);
  uint32_t token;
  // 0 is no token.
  do {
    token = lastToken.fetch_add(1, std::memory_order_relaxed) + 1;
  } while (token == 0 || buffers_.contains(token));
  buffers_.emplace(token, std::pair(session, object));
  return token;
}

void HostLink::removeBuffer(uint32_t token) {
  const std::lock_guard lock(bufferMutex_);
  buffers_.erase(token);
}

uint64_t HostLink::findBuffer(uint32_t token, const std::shared_ptr<Session>& session) {
  const std::lock_guard lock(bufferMutex_);
  const auto found = buffers_.find(token);
  return found != buffers_.end() && found->second.first.lock() == session ? found->second.second
                                                                          : 0;
}

}  // namespace hearth::ipc
