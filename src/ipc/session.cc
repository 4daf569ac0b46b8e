// SPDX-License-Identifier: Apache-2.0
#include "ipc/session.h"

#include <capnp/serialize.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <mutex>
#include <utility>

#include "base/caught.h"
#include "base/log.h"
#include "hal/device.h"

namespace hearth::ipc {
namespace {

constexpr int kGreetingMilliseconds = 30'000;

Error hostIsGone() {
  return Error(ErrorCode::kDeadObject, "The host of the driver is gone.");
}

}  // namespace

Session::Session(base::Descriptor socket) : socket_(std::move(socket)) {}

Result<std::shared_ptr<Session>> Session::open(base::Descriptor socket) {
  std::shared_ptr<Session> session(new Session(std::move(socket)));
  HEARTH_TRY(session->greet());
  return session;
}

Status Session::greet() {
  Outgoing outgoing;
  auto hello = outgoing.request.initHello();
  hello.setVersion(schema::VERSION);
  hello.setApiVersion(hal::kApiVersion);
  HEARTH_TRY(send(outgoing));
  pollfd ready{socket_.get(), POLLIN, 0};
  int count;
  do {
    count = ::poll(&ready, 1, kGreetingMilliseconds);
  } while (count < 0 && errno == EINTR);
  if (count <= 0)
    return fail(ErrorCode::kDeadObject, "The host of the driver does not answer within {} s.",
                kGreetingMilliseconds / 1000);
  HEARTH_ASSIGN(const auto reply, receive());
  HEARTH_ASSIGN(device_, readReply(reply.second, schema::Reply::DEVICE,
                                   [](auto from) { return readDevice(from.getDevice()); }));
  return {};
}

Status Session::send(Outgoing& outgoing) {
  const auto words = capnp::messageToFlatArray(outgoing.message);
  return sendFrame(socket_.get(), {words.begin(), words.size()},
                   outgoing.attachments.descriptors());
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

Result<Frame> Session::call(Outgoing& outgoing) {
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
    if (isReading_) {
      changed_.wait(lock);
      continue;
    }
    isReading_ = true;
    lock.unlock();
    auto received = base::caught([&] { return receive(); });
    lock.lock();
    isReading_ = false;
    if (!received) {
      if (received.error().code() != ErrorCode::kDeadObject)
        base::logWarn("The connection to the host of {} ends. {}", device_.name,
                      received.error().toString());
      isDead_ = true;
      ::shutdown(socket_.get(), SHUT_RDWR);
    } else if (const auto found = waiters_.find(received->first); found != waiters_.end()) {
      found->second->frame = std::move(received->second);
      found->second->isDone = true;
    }
    // The one that got its reply, or one that goes on reading.
    changed_.notify_all();
  }
  waiters_.erase(number);
  if (!sent && !isDead_) return std::unexpected(sent.error());
  if (!waiter.isDone) return std::unexpected(hostIsGone());
  hasServed_.store(true, std::memory_order_relaxed);
  return std::move(waiter.frame);
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

void Session::leaveToParent() {
  isDead_ = true;
  socket_.reset();
}

}  // namespace hearth::ipc
