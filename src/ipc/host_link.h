// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fork_aware.h"
#include "base/mutex.h"
#include "base/result.h"
#include "ipc/host_connection.h"
#include "ipc/session.h"
#include "ipc/turn.h"

namespace hearth::ipc {

// Makes a connection to the host of a device: starts a process, or joins a socket. Called again
// when the host is gone, by one thread at a time.
using HostOpener = std::function<Result<HostConnection>()>;

// The opener of another host of the same device, which may use these files and folders, too.
using HostMaker = std::function<HostOpener(const std::vector<std::string>& files)>;

// The way to the host of one device, which lives longer than any host. Thread-safe. In a forked
// child the host is the parent's, and the child gets another one.
class HostLink final : private base::ForkAware {
 public:
  // Opens the first session. `name` is that of the device, which the host has to have. Errors:
  // those of `open` and Session::open(); kBadData for a device of another name.
  static Result<std::shared_ptr<HostLink>> create(std::string name, HostOpener open);
  ~HostLink() override;

  // What the first host said.
  const DeviceDescription& device() const { return device_; }

  // A session whose host was there when it was last used. Starts the host again when it is gone: at
  // once the first time, then after a pause that doubles from 10 ms to 2 s as long as hosts die
  // before they have answered anything. During a longer pause than 100 ms this fails instead.
  // Errors: kDeadObject.
  Result<std::shared_ptr<Session>> session();
  // The same, but null when the host is gone.
  std::shared_ptr<Session> sessionIfThere();
  // How many hosts have taken the place of an earlier one.
  uint64_t restarts() const { return restarts_.load(std::memory_order_relaxed); }

  // Sends what `write` writes, and a second time to a new host when the first one ends meanwhile:
  // for requests that change nothing that a client sees. `write` returns a Status.
  template <typename Write>
  Result<Frame> callTwice(Write&& write) {
    for (int attempt = 0;; ++attempt) {
      HEARTH_ASSIGN(const std::shared_ptr<Session> there, session());
      Outgoing outgoing;
      HEARTH_TRY(write(outgoing));
      auto frame = there->call(outgoing);
      if (frame || frame.error().code() != ErrorCode::kDeadObject || attempt != 0) return frame;
    }
  }

  // Buffers of hosts under tokens of this process, which no other buffer of any host ever has.
  uint32_t addBuffer(const std::shared_ptr<Session>& session, uint64_t object);
  void removeBuffer(uint32_t token);
  // The host's name of the buffer; 0, which names none, when there is no such buffer in this
  // session.
  uint64_t findBuffer(uint32_t token, const std::shared_ptr<Session>& session);

 private:
  using Clock = std::chrono::steady_clock;

  HostLink(std::string name, HostOpener open);
  void renewInChild() override;
  // The alive session, or null. The lock is held.
  std::shared_ptr<Session> alive() const;
  // Waits for the end of the pause after a death. The turn is held, the lock is not.
  Status waitForPause();
  Result<std::shared_ptr<Session>> start();

  const std::string name_;
  const HostOpener open_;
  DeviceDescription device_;
  base::Mutex mutex_;
  Turn starting_;
  std::shared_ptr<Session> session_;  // guarded by mutex_; null before the first
  std::atomic<uint64_t> restarts_ = 0;
  // What follows belongs to whoever has the turn.
  unsigned failures_ = 0;  // hosts that ended without an answer, one after the other
  Clock::time_point nextStart_{};

  base::Mutex bufferMutex_;
  std::map<uint32_t, std::pair<std::weak_ptr<Session>, uint64_t>> buffers_;
};

}  // namespace hearth::ipc
