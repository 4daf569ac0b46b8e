// SPDX-License-Identifier: Apache-2.0
#include "ipc/session.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <mutex>
#include <utility>

#include "base/caught.h"
#include "base/log.h"
#include "hal/device.h"
#include "ipc/host_process.h"

namespace hearth::ipc {
namespace {

constexpr uint64_t kGreetingMilliseconds = 30'000;
constexpr uint64_t kMillisecond = 1'000'000;

Error hostIsGone() {
  return Error(ErrorCode::kDeadObject, "The host of the driver is gone.");
}

}  // namespace

Session::Session(base::Descriptor socket) : socket_(std::move(socket)) {}

Result<std::shared_ptr<Session>> Session::open(HostConnection connection) {
  std::shared_ptr<Session> session(new Session(std::move(connection.socket)));
  HEARTH_TRY(session->greet());
  if (connection.group != 0)
    session->ownHost_ = processOfGroup(session->device_.process, connection.group);
  return session;
}

Status Session::greet() {
  Outgoing outgoing;
  auto hello = outgoing.request.initHello();
  hello.setVersion(schema::VERSION);
  hello.setApiVersion(hal::kApiVersion);
  // Without a pulse a host that hangs is found out later.
  std::array<int, 2> ends = {-1, -1};
  const bool isPair = ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0;
  base::Descriptor own(ends[0]);
  base::Descriptor ofHost(ends[1]);
  if (isPair) hello.setPulse(static_cast<int32_t>(outgoing.attachments.add(ofHost.get())));
  HEARTH_TRY(send(outgoing));
  ofHost.reset();
  if (!waitForBytes(base::Deadline::after(kGreetingMilliseconds * kMillisecond)))
    return fail(ErrorCode::kDeadObject, "The host of the driver does not answer within {} s.",
                kGreetingMilliseconds / 1000);
  HEARTH_ASSIGN(const auto reply, receive());
  HEARTH_ASSIGN(device_, readReply(reply.second, schema::Reply::DEVICE, [&](auto from) {
                  if (isPair && from.getDevice().getHasPulse())
                    pulse_ = std::make_unique<HostPulse>(std::move(own));
                  return readDevice(from.getDevice());
                }));
  return {};
}

bool Session::waitForBytes(base::Deadline deadline) const {
  using std::chrono::milliseconds;
  if (deadline.isNever()) return true;
  pollfd ready{socket_.get(), POLLIN, 0};
  while (true) {
    const auto rest =
        std::chrono::ceil<milliseconds>(deadline.when() - base::Deadline::Clock::now());
    const int count =
        ::poll(&ready, 1, static_cast<int>(std::clamp<int64_t>(rest.count(), 0, INT_MAX)));
    if (count > 0) return true;
    if ((count < 0 && errno != EINTR) || deadline.hasPassed()) return false;
  }
}

Status Session::send(Outgoing& outgoing) {
  return sendMessage(socket_.get(), outgoing.message, outgoing.attachments.descriptors());
}

Result<std::pair<uint64_t, Frame>> Session::receive() {
  HEARTH_ASSIGN(Frame frame, receiveFrame(socket_.get()));
  HEARTH_ASSIGN(const uint64_t call,
                readMessage<schema::Reply>(frame.words(),
                                           [](schema::Reply::Reader reply) -> Result<uint64_t> {
                                             return reply.getCall();
                                           }));
  return std::pair(call, std::move(frame));
}

Result<Frame> Session::call(Outgoing& outgoing, Patience patience) {
  if (isDead()) return std::unexpected(hostIsGone());
  const uint64_t number = nextCall_.fetch_add(1);
  outgoing.request.setCall(number);
  Waiter waiter;
  {
    const std::lock_guard lock(mutex_);
    waiters_.emplace(number, &waiter);
  }
  const Status sent = send(outgoing);
  outgoing.isSent = sent.has_value();
  if (!sent && sent.error().code() == ErrorCode::kDeadObject) isDead_ = true;
  std::unique_lock lock(mutex_);
  while (sent && !waiter.isDone && !isDead_) {
    const base::Deadline next = patience.next();
    if (next.hasPassed() && patience.hasRunOut()) break;
    if (isReading_) {
      if (next.isNever())
        changed_.wait(lock);
      else
        changed_.wait_until(lock, next.when());
      continue;
    }
    isReading_ = true;
    lock.unlock();
    const bool isReady = waitForBytes(next);
    auto received = base::caught([&]() -> Result<std::pair<uint64_t, Frame>> {
      if (isReady) return receive();
      return fail(ErrorCode::kMissedDeadlineTransient, "Nothing has come.");
    });
    lock.lock();
    isReading_ = false;
    if (isReady) {
      if (const auto unwanted = take(std::move(received))) {
        lock.unlock();
        release(unwanted->kind, unwanted->object);
        lock.lock();
      }
    }
    // The one that got its reply, or one that goes on reading.
    changed_.notify_all();
  }
  waiters_.erase(number);
  if (sent && !waiter.isDone && outgoing.makes) unwanted_.emplace(number, *outgoing.makes);
  if (!sent && !isDead_) return std::unexpected(sent.error());
  if (!waiter.isDone && isDead_) return std::unexpected(hostIsGone());
  if (!waiter.isDone && patience.hasDeadline())
    return fail(ErrorCode::kMissedDeadlineTransient,
                "The host of the device {} does not answer in time.", device_.name);
  if (!waiter.isDone) {
    lock.unlock();
    giveUp();
    return fail(ErrorCode::kDeadObject,
                "The host of the device {} hangs: it has not answered its pulse, or has begun no "
                "step, for long.",
                device_.name);
  }
  hasServed_.store(true, std::memory_order_relaxed);
  return std::move(waiter.frame);
}

std::optional<Session::Unwanted> Session::take(Result<std::pair<uint64_t, Frame>> received) {
  if (!received) {
    if (received.error().code() != ErrorCode::kDeadObject)
      base::logWarn("The connection to the host of {} ends. {}", device_.name,
                    received.error().toString());
    noteDeath();
  } else if (const auto found = waiters_.find(received->first); found != waiters_.end()) {
    found->second->frame = std::move(received->second);
    found->second->isDone = true;
  } else if (const auto made = unwanted_.find(received->first); made != unwanted_.end()) {
    const Unwanted unwanted{made->second, readMessage<schema::Reply>(
                                              received->second.words(),
                                              [](schema::Reply::Reader reply) -> Result<uint64_t> {
                                                if (reply.isModel())
                                                  return reply.getModel().getObject();
                                                return reply.isObject() ? reply.getObject() : 0;
                                              })
                                              .value_or(0)};
    unwanted_.erase(made);
    // 0 names none: the reply is an error.
    if (unwanted.object != 0) return unwanted;
  }
  return std::nullopt;
}

void Session::release(schema::Release::Kind kind, uint64_t object) noexcept {
  if (isDead()) return;
  base::logged("Releasing an object of a driver's host", [&] {
    Outgoing outgoing;
    auto release = outgoing.request.initRelease();
    release.setKind(kind);
    release.setObject(object);
    if (!send(outgoing)) isDead_ = true;
  });
}

bool Session::isDead() const {
  return isDead_.load();
}

bool Session::isHostThere() const {
  if (isDead()) return false;
  pollfd ended{socket_.get(), POLLRDHUP, 0};
  return ::poll(&ended, 1, 0) <= 0;
}

void Session::noteDeath() {
  isDead_ = true;
  // Ends the wait of whoever reads.
  ::shutdown(socket_.get(), SHUT_RDWR);
}

void Session::giveUp() {
  if (isHostOwn())
    endHost();
  else
    noteDeath();
}

void Session::endHost() {
  endProcess(ownHost_);
  noteDeath();
}

void Session::leaveToParent() {
  isDead_ = true;
  socket_.reset();
  ownHost_.reset();
}

}  // namespace hearth::ipc
