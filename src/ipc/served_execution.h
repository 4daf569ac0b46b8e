// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/deadline.h"
#include "base/descriptor.h"
#include "base/result.h"
#include "graph/model.h"
#include "hal/device.h"
#include "ipc/client_memory.h"
#include "ipc/execution_words.h"
#include "ipc/fair_share.h"
#include "ipc/model_memory.h"
#include "memory/mapping.h"
#include "memory/pool.h"

namespace hearth::ipc {

// The turns that the executions of a client take, and at which priority.
struct ClientTurns {
  FairShare::Client* client = nullptr;  // null: they do not wait for each other
  hal::Priority priority = hal::Priority::kMedium;
};

// An execution in a host. Where clients do not trust each other, it computes on copies of the
// arguments, since drivers rely on memory that does not change while they read it.
class ServedExecution {
 public:
  // `outputs` are those of the model, empty when they are not known. The client of `turns` outlives
  // all computations. `memory` has what the driver allocates to compute. `threads` are those that
  // it may use at a time. `onDeath` is called when the driver says that its device is gone.
  ServedExecution(std::vector<graph::Operand> outputs, ClientTurns turns,
                  std::shared_ptr<ModelMemory> memory, unsigned threads,
                  std::function<void()> onDeath)
      : outputs_(std::move(outputs)),
        turns_(turns),
        memory_(std::move(memory)),
        threads_(threads),
        onDeath_(std::move(onDeath)) {}

  // Replaces the arguments in client memory by private ones. Before bind().
  Status copyArguments(hal::Request* request, ClientMemories* memories);

  // Binds the request, whose memories this keeps. `others` live as long, too.
  Status bind(hal::PreparedModel& model, hal::Request request,
              std::vector<memory::PoolRef> memories);
  void keep(std::shared_ptr<void> other) { kept_.push_back(std::move(other)); }

  unsigned threads() const { return threads_; }

  // kBadState while another thread computes. kOpFailed when the client has taken memory away.
  // kDeadObject when the client's turns end.
  hal::ExecutionResult compute(const base::Deadline& deadline);

  // The same with an answer for the mailbox. A result that does not fit in there is kept for
  // fetchResult().
  ExecutionAnswer computeInMailbox(const base::Deadline& deadline);

  // As those of hal::Execution, but finishFenced() fails with kBadState as long as the fence is not
  // readable: a client's fences may never be. No turn is taken. kUnsupported for arguments that are
  // copied.
  // `held` lives until the computation is over, or was given up.
  Result<base::Descriptor> startFenced(std::vector<base::Descriptor> fences,
                                       const base::Deadline& deadline, std::shared_ptr<void> held);
  hal::ExecutionResult finishFenced();

  // The result of the last computation whose answer was not plain, once. kBadState when there is
  // none.
  Result<hal::ExecutionResult> fetchResult();

 private:
  struct Copied {
    size_t index;  // among the inputs or outputs
    uint8_t* own;
    uint8_t* client;
    uint64_t length;
  };

  // With turn_ locked.
  hal::ExecutionResult computeLocked(const base::Deadline& deadline);
  // What the driver says; kOpFailed where the client has taken memory away.
  void check(hal::ExecutionResult& result) const;
  void noteDeath(const Error& error) const;
  void tell(const hal::ExecutionResult& result);
  void copyIn() const;
  void copyOut(const hal::ExecutionResult& result) const;

  const std::vector<graph::Operand> outputs_;
  const ClientTurns turns_;
  const std::shared_ptr<ModelMemory> memory_;
  const unsigned threads_;
  const std::function<void()> onDeath_;
  std::mutex turn_;         // of threads that compute; guards the next four
  base::Descriptor fence_;  // of what startFenced() has started
  std::shared_ptr<void> heldForFences_;
  hal::OutputShapes toldShapes_;                     // that the client was told last
  std::unique_ptr<hal::ExecutionResult> unfetched_;  // of the last computation; may be null
  memory::Mapping own_;
  std::vector<Copied> copiedInputs_;
  std::vector<Copied> copiedOutputs_;
  std::vector<memory::PoolRef> memories_;
  std::vector<std::shared_ptr<void>> kept_;
  std::unique_ptr<hal::Execution> execution_;
};

}  // namespace hearth::ipc
