// SPDX-License-Identifier: Apache-2.0
// A client's connection to a host.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/deadline.h"
#include "base/descriptor.h"
#include "base/mutex.h"
#include "base/result.h"
#include "driver.capnp.h"
#include "ipc/decoding.h"
#include "ipc/encoding.h"
#include "ipc/frame.h"
#include "ipc/host_connection.h"
#include "ipc/host_pulse.h"
#include "ipc/paged_message.h"
#include "ipc/patience.h"

namespace hearth::ipc {

// A request that is being written.
struct Outgoing {
  PagedMessage message;
  schema::Request::Builder request = message.initRoot<schema::Request>();
  Attachments attachments;
  // Whether it was sent, so that the host may have begun to do it.
  bool isSent = false;
  // What the reply names, if it names an object: it is released when nobody waits for it any more.
  std::optional<schema::Release::Kind> makes;
};

// Thread-safe. Has no thread: of the callers that wait, one reads for all.
class Session {
 public:
  // Greets the host behind a connected socket. Errors: kDeadObject when there is none, or it does
  // not answer in time; kUnsupported when it speaks another version; kBadData.
  static Result<std::shared_ptr<Session>> open(HostConnection connection);

  // What the host said about its device.
  const DeviceDescription& device() const { return device_; }

  // Sends a request and waits for its reply as long as `patience` lasts. Errors: kDeadObject when
  // the host is gone, or a call without a deadline is given up, which makes the session dead and
  // ends a host of this client's own; kUnsupported when the request is too large;
  // kMissedDeadlineTransient when a call with a deadline is given up, and its reply is not to be
  // had any more. What the host answers, an error or not, is in the reply. An object that nobody
  // waits for any more is released when its reply comes.
  Result<Frame> call(Outgoing& outgoing, Patience patience);
  // The same without a deadline.
  Result<Frame> call(Outgoing& outgoing) { return call(outgoing, patience({})); }

  // How long to wait for an answer that has this deadline. Of this session, which must outlive it.
  Patience patience(base::Deadline deadline, std::chrono::nanoseconds longestStep = {}) const {
    return Patience(deadline, pulse_.get(), longestStep);
  }

  // Tells the host that an object is not needed any more. Does not wait.
  void release(schema::Release::Kind kind, uint64_t object) noexcept;

  // Whether a call has found that the host is gone. Once so, always so.
  bool isDead() const;
  // Whether the other end of the connection is open, as the kernel knows; it may have been closed
  // without any call having found that.
  bool isHostThere() const;
  // Makes the session dead, for who has found that the host is gone.
  void noteDeath();
  // Whether the host is this client's own, so that endHost() may be called.
  bool isHostOwn() const { return ownHost_.valid(); }
  // Kills the host, and waits until it is gone and nothing of it uses the client's memory any more.
  // The session is dead then.
  void endHost();
  // Makes the session dead, and ends the host if it is this client's own: for who has found that it
  // hangs.
  void giveUp();
  // Whether the host has answered anything but the greeting.
  bool hasServed() const { return hasServed_.load(std::memory_order_relaxed); }

  // For a forked child, which must not use its parent's connection.
  void leaveToParent();

 private:
  struct Unwanted {
    schema::Release::Kind kind;
    uint64_t object = 0;
  };
  struct Waiter {
    bool isDone = false;
    Frame frame;
  };

  explicit Session(base::Descriptor socket);
  Status greet();
  Status send(Outgoing& outgoing);
  // Reads one message and hands it to its waiter. Not called under the lock.
  Result<std::pair<uint64_t, Frame>> receive();
  // Hands a message to its waiter, or notes the end; returns an object that nobody waits for. With
  // mutex_ locked.
  std::optional<Unwanted> take(Result<std::pair<uint64_t, Frame>> received);
  // Whether there is something to be read before the deadline.
  bool waitForBytes(base::Deadline deadline) const;

  base::Descriptor socket_;
  std::unique_ptr<HostPulse> pulse_;  // null where the host has none
  base::Descriptor ownHost_;          // a handle of the process; not valid for a host of others
  DeviceDescription device_;
  std::atomic<bool> hasServed_ = false;
  std::atomic<bool> isDead_ = false;
  std::atomic<uint64_t> nextCall_ = 1;
  base::Mutex mutex_;
  base::Condition changed_;
  std::map<uint64_t, Waiter*> waiters_;  // guarded by mutex_
  // What calls make that were given up. Guarded by mutex_.
  std::map<uint64_t, schema::Release::Kind> unwanted_;
  bool isReading_ = false;  // guarded by mutex_
};

// The reply of a kind that the caller expects, read by `read`; its error if it is one. kBadData
// when the host sends something else.
template <typename Read>
auto readReply(const Frame& frame, schema::Reply::Which expected, Read&& read)
    -> std::invoke_result_t<Read&, schema::Reply::Reader> {
  return readMessage<schema::Reply>(
      frame.words(),
      [&](schema::Reply::Reader reply) -> std::invoke_result_t<Read&, schema::Reply::Reader> {
        if (reply.which() == schema::Reply::ERROR)
          return std::unexpected(readError(reply.getError()));
        if (reply.which() != expected)
          return fail(ErrorCode::kBadData, "The host of a driver answers something else.");
        return read(reply);
      });
}

}  // namespace hearth::ipc
