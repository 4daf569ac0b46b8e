// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "driver.capnp.h"
#include "hal/device.h"
#include "ipc/client_memory.h"
#include "ipc/client_threads.h"
#include "ipc/fair_share.h"
#include "ipc/frame.h"
#include "ipc/host.h"
#include "ipc/served_objects.h"
#include "ipc/served_pulse.h"

namespace hearth::ipc {

// What clients that do not trust each other have in common; all null for a client alone.
struct CommonOfClients {
  FairShare* turns = nullptr;  // that the executions take
  std::shared_ptr<SharedModels> models;
};

// Does what the messages of one client ask for. Thread-safe.
class ServedRequests {
 public:
  // `threads` and `state` outlive this object.
  ServedRequests(std::shared_ptr<hal::Device> device, HostOptions options, uid_t user,
                 HostState* state, ClientThreads* threads, CommonOfClients common);

  // Does what a message asks for, on the calling thread, and sends the reply to `socket`. `self` is
  // held by threads that work on. An error is a client that does not keep to the protocol, or is
  // gone.
  Status handle(Frame& frame, int socket, const std::shared_ptr<void>& self);

  // Ends all waits for turns, and frees what the client has and is not in use.
  void close();

  ServedPulse& pulse() { return pulse_; }
  const ServedPulse& pulse() const { return pulse_; }

 private:
  // A request that is being answered.
  struct Call;

  Status answer(Call& call);
  Status dispatch(Call& call);
  Status greet(Call& call);
  Status support(Call& call, schema::Model::Reader model, bool isExplained);
  Status prepare(Call& call, schema::Preparation::Reader from, bool hasModel);
  Status explainStart(Call& call, schema::Preparation::Reader from);
  Status explainCache(Call& call, schema::Preparation::Reader from);
  Status cacheBuild(Call& call);
  Status report(Call& call, schema::ReportRequest::Reader from);
  Status createExecution(Call& call, schema::ExecutionRequest::Reader from);
  Status compute(Call& call, schema::Computation::Reader from);
  Status startFenced(Call& call, schema::FencedComputation::Reader from);
  Status finishFenced(Call& call, uint64_t execution);
  Status openMailbox(Call& call, schema::Mailbox::Reader from);
  Status fetchResult(Call& call, uint64_t execution);
  Status allocate(Call& call, schema::Allocation::Reader from);
  Status copyTo(Call& call, schema::Copy::Reader from);
  Status copyFrom(Call& call, schema::Copy::Reader from);

  Result<graph::Model> readModel(Call& call, schema::Model::Reader from, ClientMemories* memories);
  // Lets the driver prepare what a request says, with pools in `memories`; what it allocates counts
  // in `memory`.
  Result<std::shared_ptr<const ServedModel>> makeModel(Call& call, schema::Preparation::Reader from,
                                                       const hal::PrepareOptions& options,
                                                       hal::Cache cache, bool hasModel,
                                                       ClientMemories* memories,
                                                       ModelMemory* memory);
  Result<hal::PrepareOptions> readOptionsOf(Call& call, schema::Preparation::Reader from) const;
  Result<hal::Argument> readArgument(Call& call, schema::Argument::Reader from, uint64_t model,
                                     bool isInput, uint32_t index,
                                     const std::vector<memory::PoolRef>& memories,
                                     ServedExecution* execution);

  const std::shared_ptr<hal::Device> device_;
  const HostOptions options_;
  const uid_t user_;
  HostState& state_;
  ClientThreads& threads_;
  ClientMemories memories_;
  FairShare::Client turns_;
  const bool takesTurns_;
  const std::shared_ptr<SharedModels> sharedModels_;  // null where none are shared
  ServedPulse pulse_;
  std::atomic<bool> isGreeted_ = false;
  ServedObjects objects_;
};

}  // namespace hearth::ipc
