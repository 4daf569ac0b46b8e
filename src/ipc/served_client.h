// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "driver.capnp.h"
#include "hal/device.h"
#include "ipc/client_memory.h"
#include "ipc/fair_share.h"
#include "ipc/frame.h"
#include "ipc/host.h"
#include "ipc/served_pulse.h"

namespace hearth::ipc {

class ModelMemory;
class ServedExecution;
class ServedMailbox;
class SharedModels;
struct ServedModel;

// One client of a host: its connection, the threads that work for it, and what it has. It names
// objects by numbers that mean nothing on another connection. Thread-safe.
class ServedClient final : public std::enable_shared_from_this<ServedClient> {
 public:
  // What clients that do not trust each other have in common; all null for a client alone.
  struct Common {
    FairShare* turns = nullptr;  // that the executions take
    std::shared_ptr<SharedModels> models;
  };

  // Counts itself in `state` as long as it exists.
  ServedClient(std::shared_ptr<hal::Device> device, HostOptions options, base::Descriptor socket,
               pid_t process, uid_t user, std::shared_ptr<HostState> state, Common common);
  ~ServedClient();

  // Starts a thread that reads messages, if there may be one more; false when none can be had, and
  // there is none. Threads that wait for long end.
  bool start();
  // Whether a thread reads messages, or is at one.
  bool isRead() const;

  // Ends the connection, and frees what the client has and is not in use. The threads end when they
  // have computed what they are at.
  void end();
  bool hasEnded() const { return hasEnded_.load(); }
  // The same on a thread of its own: drivers may take their time to free things.
  void endApart();
  // Whether one of the two was called.
  bool isEnding() const { return isEnding_.load(); }

  // Whether all threads have ended.
  bool isIdle() const;
  bool waitUntilIdle(std::chrono::steady_clock::time_point until);

  // Answers a message, on the calling thread; for the threads that start() starts, and for tests.
  // An error is a client that does not keep to the protocol, or is gone.
  Status handle(Frame& frame);

  int socket() const { return socket_.get(); }
  ServedPulse& pulse() { return pulse_; }
  const ServedPulse& pulse() const { return pulse_; }
  uid_t user() const { return user_; }

 private:
  struct Model {
    std::shared_ptr<const ServedModel> served;
    bool isOwn = true;  // whether it was prepared for this client
    hal::Priority priority = hal::Priority::kMedium;
    unsigned threads = 1;          // that a computation may use
    std::shared_ptr<void> room;    // for what the driver makes of the constants
    std::shared_ptr<void> places;  // of the pools that other clients use, too
    std::shared_ptr<ModelMemory> memory;
    std::shared_ptr<void> others;  // room for what another client's preparation has allocated
  };
  struct Buffer;
  // A request that is being answered.
  struct Call;

  // A thread that calls `work` and counts among those of this client; false when none can be had.
  // With threadMutex_ locked.
  template <typename Work>
  bool startThread(const char* name, Work work);
  // Called by a thread at its end, unless it reads messages.
  void threadEnds();
  void run() noexcept;
  // Has the thread that waits for all clients look again for what it waits; false when it cannot be
  // told.
  bool stir() const;
  // Called by a thread that has waited for a message for long: whether it is to end, and counts no
  // more.
  bool isNotNeeded();
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
  Status openMailbox(Call& call, schema::Mailbox::Reader from);
  Status fetchResult(Call& call, uint64_t execution);
  Status allocate(Call& call, schema::Allocation::Reader from);
  Status copyTo(Call& call, schema::Copy::Reader from);
  Status copyFrom(Call& call, schema::Copy::Reader from);
  void release(schema::Release::Reader from);

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
  // kResourceExhaustedTransient when the client has as many objects as it may have.
  template <typename Object>
  Result<uint64_t> add(std::map<uint64_t, Object>* objects, Object object);
  // The object, or an empty one after noting a violation.
  template <typename Object>
  Object find(Call& call, const std::map<uint64_t, Object>& objects, uint64_t name);

  const std::shared_ptr<hal::Device> device_;
  const HostOptions options_;
  const base::Descriptor socket_;
  const pid_t process_;
  const uid_t user_;
  const std::shared_ptr<HostState> state_;
  ClientMemories memories_;
  FairShare::Client turns_;
  const bool takesTurns_;
  const std::shared_ptr<SharedModels> sharedModels_;  // null where none are shared
  ServedPulse pulse_;
  std::atomic<bool> isGreeted_ = false;
  std::atomic<bool> isEnding_ = false;
  std::atomic<bool> hasEnded_ = false;

  mutable std::mutex threadMutex_;
  std::condition_variable threadEnded_;
  unsigned threads_ = 0;  // all of this client; guarded by threadMutex_, as are the next two
  unsigned readers_ = 0;  // of them, those for messages
  unsigned idle_ = 0;     // of these, those that wait for a message

  std::mutex mutex_;  // guards what follows
  uint64_t lastName_ = 0;
  std::map<uint64_t, std::shared_ptr<Model>> models_;
  std::map<uint64_t, std::shared_ptr<ServedExecution>> executions_;
  std::map<uint64_t, std::shared_ptr<Buffer>> buffers_;
  std::map<uint64_t, std::shared_ptr<ServedMailbox>> mailboxes_;  // by the name of the execution
};

}  // namespace hearth::ipc
