// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "hal/device.h"
#include "ipc/execution_mailbox.h"
#include "ipc/hosted_model.h"

namespace hearth::ipc {

// Arguments bound to a model in a host. Pools go to the host as descriptors; what pointers refer to
// is copied into shared memory of the execution before each computation, and out of it afterwards.
// The first computation travels as a message. An execution that computes again has a mailbox for
// it, if the host grants one.
class HostedExecution final : public hal::Execution {
 public:
  static Result<std::unique_ptr<hal::Execution>> create(std::shared_ptr<HostedModel> model,
                                                        hal::Request request);
  ~HostedExecution() override;

  hal::ExecutionResult compute(const base::Deadline& deadline) override;
  // kUnsupported for arguments that are copied, too: the copies would have to wait for the fences.
  Result<base::Descriptor> startFenced(std::vector<base::Descriptor> fences,
                                       const base::Deadline& deadline) override;
  hal::ExecutionResult finishFenced() override;

 private:
  // An argument of the client's own memory, and where its copy is.
  struct Copied {
    size_t index = 0;  // among the inputs or outputs
    uint8_t* bytes = nullptr;
    uint64_t length = 0;
    uint64_t offset = 0;  // in arena_
  };

  HostedExecution(std::shared_ptr<HostedModel> model, hal::Request request);
  // Finds the arguments to copy, and makes the arena.
  Status layOut();
  Status makeArena();
  Status layOut(const std::vector<hal::Argument>& arguments, bool isInput,
                std::vector<Copied>* copied, uint64_t* size) const;
  // Binds the arguments in the host where the model is now, unless they are bound there.
  Status bind();
  void writeArguments(const std::vector<hal::Argument>& arguments,
                      const std::vector<Copied>& copied, capnp::List<schema::Argument>::Builder to,
                      std::vector<memory::PoolRef>* memories) const;
  // How many bytes a computation has written to an output; nothing when that cannot be told.
  std::optional<uint64_t> bytesOf(size_t output, const hal::ExecutionResult& result) const;
  void copyIn() const;
  // Returns how many bytes were copied. kOpFailed when the result contradicts the model.
  Result<uint64_t> copyOut(const hal::ExecutionResult& result) const;
  // `*isBegun`: whether the host may have begun.
  Result<hal::ExecutionResult> computeOnce(const base::Deadline& deadline, bool* isBegun);
  Result<hal::ExecutionResult> computeByMessage(const base::Deadline& deadline, bool* isBegun);
  // Until when to wait for the host. One for all clients can be given up: it computes on copies of
  // the arguments, so what it does later reaches nothing that belongs to the client. A host that
  // uses the client's memory in place can only be ended.
  Patience patience(const base::Deadline& deadline) const;
  // Gives up a computation that the host does not end, and what it shares with it; ends the
  // client's own host.
  Error abandon(bool hasDeadline);
  // Opens a mailbox for an execution that computes again. A host that grants none is no error.
  void openMailbox();

  const std::shared_ptr<HostedModel> model_;
  const hal::Request request_;
  std::vector<Copied> inputs_;
  std::vector<Copied> outputs_;
  uint64_t arenaBytes_ = 0;   // 0 when nothing is copied
  memory::PoolRef arena_;     // null when nothing is copied, or the last one was given up
  HostedModel::Place place_;  // of the model
  uint64_t object_ = 0;       // the execution
  // What follows belongs to the place.
  hal::OutputShapes toldShapes_;  // that the host told last
  bool hasComputed_ = false;
  bool wantsMailbox_ = true;
  std::unique_ptr<ExecutionMailbox> mailbox_;
  base::Descriptor fence_;  // of what startFenced() has started; else not valid
};

}  // namespace hearth::ipc
