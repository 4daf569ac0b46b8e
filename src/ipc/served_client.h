// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <memory>

#include "base/descriptor.h"
#include "base/result.h"
#include "hal/device.h"
#include "ipc/client_threads.h"
#include "ipc/frame.h"
#include "ipc/host.h"
#include "ipc/served_pulse.h"
#include "ipc/served_requests.h"

namespace hearth::ipc {

// One client of a host: its connection, the threads that work for it, and what it has. Thread-safe.
class ServedClient final : public std::enable_shared_from_this<ServedClient> {
 public:
  // Counts itself in `state` as long as it exists.
  ServedClient(std::shared_ptr<hal::Device> device, HostOptions options, base::Descriptor socket,
               pid_t process, uid_t user, std::shared_ptr<HostState> state, CommonOfClients common);

  // Starts a thread that reads messages, if there may be one more; false when none can be had, and
  // there is none. Threads that wait for long end.
  bool start();
  // Whether a thread reads messages, or is at one.
  bool isRead() const { return threads_.isRead(); }

  // Ends the connection, and frees what the client has and is not in use. The threads end when they
  // have computed what they are at.
  void end();
  bool hasEnded() const { return hasEnded_.load(); }
  // The same on a thread of its own: drivers may take their time to free things.
  void endApart();
  // Whether one of the two was called.
  bool isEnding() const { return isEnding_.load(); }

  // Whether all threads have ended.
  bool isIdle() const { return threads_.isIdle(); }
  bool waitUntilIdle(std::chrono::steady_clock::time_point until) {
    return threads_.waitUntilIdle(until);
  }

  // Answers a message, on the calling thread; for the threads that start() starts, and for tests.
  // An error is a client that does not keep to the protocol, or is gone.
  Status handle(Frame& frame);

  int socket() const { return socket_.get(); }
  ServedPulse& pulse() { return requests_.pulse(); }
  const ServedPulse& pulse() const { return requests_.pulse(); }
  uid_t user() const { return user_; }

 private:
  // What a thread that reads messages does.
  void run() noexcept;

  const ClientPresence presence_;
  const base::Descriptor socket_;
  const pid_t process_;
  const uid_t user_;
  const std::shared_ptr<HostState> state_;
  std::atomic<bool> isEnding_ = false;
  std::atomic<bool> hasEnded_ = false;
  ClientThreads threads_;
  ServedRequests requests_;
};

}  // namespace hearth::ipc
