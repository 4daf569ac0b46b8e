// SPDX-License-Identifier: Apache-2.0
// Whose execution a device computes next when several clients of a host want it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/deadline.h"
#include "base/result.h"
#include "hal/device.h"

namespace hearth::ipc {

// Turns on one device. A free turn goes to the user who has used the device least among those that
// wait for it; of this user's clients to the one that has used it least, weighed by priority; of
// this client's executions to the one of the highest priority that came first. Use is the processor
// time that turns were charged with. So who asks for much waits for itself, and nobody starves.
// Priorities count among the clients of one user, as NNAPI has it: a time at high priority is
// charged to a client as a quarter of it, one at low priority as four times.
//
// Who asks for nothing saves up no more than kMostSaved: it starts that much before those that were
// served meanwhile, and a new client or user level with them. A user's debt outlives the user's
// clients, so that none is forgiven by connecting again. Thread-safe.
class FairShare {
  struct State;
  struct ClientState;

 public:
  // Enough for a client that asks again as soon as it has its answer: it is not there at the moment
  // when the device becomes free.
  static constexpr std::chrono::milliseconds kMostSaved{20};

  // A turn; ends when it is ended or destroyed, from any thread. Move-only.
  class Turn {
   public:
    Turn() = default;
    Turn(Turn&& other) noexcept;
    Turn& operator=(Turn&& other) noexcept;
    // Ends a turn that was not ended, with the time since it began as its cost.
    ~Turn();

    // Ends the turn and charges `cost`, the processor time that it took. Once at most.
    void end(std::chrono::nanoseconds cost);

   private:
    friend class FairShare;
    Turn(std::shared_ptr<State> state, std::shared_ptr<ClientState> client, hal::Priority priority,
         uint64_t expected);

    std::shared_ptr<State> state_;  // null: none, or ended
    std::shared_ptr<ClientState> client_;
    hal::Priority priority_ = hal::Priority::kMedium;
    uint64_t expected_ = 0;  // charged in advance
    std::chrono::steady_clock::time_point begin_;
  };

  // One who asks for turns. The destructor closes it. Move-only; take() and close() are
  // thread-safe.
  class Client {
   public:
    Client() = default;
    Client(Client&&) = default;
    Client& operator=(Client&& other) noexcept;
    ~Client();

    // Waits for a turn. Errors: kMissedDeadlineTransient when `deadline` passes before, or has
    // passed; kDeadObject when the client is or gets closed.
    Result<Turn> take(hal::Priority priority, base::Deadline deadline = {});

    // Ends all waits of this client; turns that it has go on until they end.
    void close();

   private:
    friend class FairShare;
    Client(std::shared_ptr<State> state, std::shared_ptr<ClientState> client);

    std::shared_ptr<State> state_;
    std::shared_ptr<ClientState> client_;
  };

  // `turnsAtOnce` is how many executions the device computes at a time, at least one. Clients and
  // turns may outlive this object.
  explicit FairShare(size_t turnsAtOnce = 1);

  // A client of the user with this number, for instance the user id of a connection's peer.
  Client addClient(uint32_t user);

  // How many wait for a turn, and how many have one.
  size_t waiting() const;
  size_t running() const;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace hearth::ipc
