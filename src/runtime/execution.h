// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/descriptor.h"
#include "base/fork_gate.h"
#include "base/mutex.h"
#include "base/result.h"
#include "hal/device.h"
#include "memory/string_heap.h"
#include "runtime/compilation.h"
#include "runtime/event.h"
#include "runtime/scheduler.h"
#include "runtime/state_buffers.h"

namespace hearth::runtime {

struct Statistics {
  uint64_t runs = 0;         // that succeeded
  uint64_t lastNs = 0;       // wall time of the last such run
  hal::Timing timing;        // of that run, as the driver measured it
  uint64_t copiedBytes = 0;  // of arguments, in that run
};

// Runs a compilation, one run at a time, and holds its arguments and state. A run is in flight from
// the time when a thread claims the execution until it releases the claim. Thread-safe; calls that
// need a claim fail with kBadState while a run is in flight.
class Execution : public std::enable_shared_from_this<Execution> {
 public:
  // The exclusive right to use the execution, released by the destructor. Move-only; the execution
  // must outlive it.
  class Claim {
   public:
    explicit Claim(Execution* execution) : execution_(execution) {}
    Claim(Claim&& other) noexcept : execution_(std::exchange(other.execution_, nullptr)) {}
    Claim& operator=(Claim&&) = delete;
    ~Claim() { release(); }
    void release() {
      if (execution_ != nullptr) std::exchange(execution_, nullptr)->release();
    }

   private:
    friend class Execution;
    Execution* execution_;
  };

  static Result<std::shared_ptr<Execution>> create(std::shared_ptr<const Compilation> compilation);

  const Compilation& compilation() const { return *compilation_; }

  // Sets an argument of kind kPointer or kPool. Runs use its memory until it is replaced. kBadData
  // when index, dimensions or length differ from the model's; kUnexpectedNull for bytes at null.
  Status setInput(size_t index, hal::Argument argument);
  Status setOutput(size_t index, hal::Argument argument);

  // Prepares for the shapes of the arguments what the next run would prepare. kBadState while a run
  // is in flight; errors of hal::PreparedModel::createExecution().
  Status prepareRun();
  // Runs in the calling thread. State advances only when the run succeeds.
  Status compute(const base::Deadline& deadline);
  // Runs in a thread of the scheduler, which keeps this object alive.
  Result<std::shared_ptr<Event>> start(const base::Deadline& deadline, Scheduler& scheduler);
  // Returns when no run of this process is in flight.
  void waitUntilIdle() const;

  Status resetState();
  // The string of an element that the last run wrote to an output; valid until the next run.
  // kNotFound if the run has no such string, kBadState while a run is in flight.
  Result<std::string_view> string(memory::StringHandle element) const;
  // The shape after the last run that succeeded or had too small buffers. Before such a run the
  // model's shape if all of it is known, else kBadState.
  Result<graph::Dimensions> outputShape(size_t index) const;
  Statistics statistics() const;

  // The functions below are for front ends that have rules of their own for arguments and results.
  // Such a front end uses none of the functions above but create().

  // kBadState while a run is in flight, and for ever in a child forked during a run.
  Result<Claim> claim();
  bool isInFlight() const;
  // Whether the driver has bound the arguments of the next run.
  bool isBound(const Claim& /*claim*/) const { return bound_[states_.current()] != nullptr; }
  // Sets all arguments of the following runs.
  void setRequest(const Claim& claim, hal::Request request);
  // Runs once; state advances if the run succeeds.
  hal::ExecutionResult run(const Claim& claim, const base::Deadline& deadline);

  // Starts the next run on the device, which waits for `fences` itself; see
  // hal::Execution::startFenced(). kUnsupported where it cannot.
  Result<base::Descriptor> startFenced(const Claim& claim, std::vector<base::Descriptor> fences,
                                       const base::Deadline& deadline);
  // The result of the run that startFenced() has started. State advances if it has succeeded.
  hal::ExecutionResult finishFenced(const Claim& claim);

  // Calls `work` in a thread of the scheduler, then releases the claim, then completes the event
  // with the result of `work`. An exception of `work` becomes its result. If schedule() fails,
  // `work` is not called.
  using Work = std::function<Status(const Claim&)>;
  Result<std::shared_ptr<Event>> schedule(Claim claim, Work work, Scheduler& scheduler);

  // Like schedule(), but once all dependencies are complete, with a deadline `duration` nanoseconds
  // later (0 = none). When a dependency failed, or the scheduler has no thread, `isReady` is that
  // error, `work` is called in any thread, and it must only return the run's result.
  using DependentWork =
      std::function<Status(const Claim&, const base::Deadline&, const Status& isReady)>;
  Result<std::shared_ptr<Event>> scheduleAfter(Claim claim,
                                               std::span<const std::shared_ptr<Event>> dependencies,
                                               uint64_t duration, DependentWork work,
                                               Scheduler& scheduler);
  // The same for a run that startFenced() has started, once it has ended, too: `fence` is its own,
  // and that of the event for other devices. `work` has to call finishFenced() in any case. Does
  // not fail: where the fence cannot be watched, `work` waits.
  std::shared_ptr<Event> scheduleFenced(Claim claim,
                                        std::span<const std::shared_ptr<Event>> dependencies,
                                        base::Descriptor fence, DependentWork work,
                                        Scheduler& scheduler);

 private:
  explicit Execution(std::shared_ptr<const Compilation> compilation)
      : compilation_(std::move(compilation)) {}

  // Whether a thread of this process has the claim.
  bool isClaimedHere() const { return claimedIn_.load() == claimOfThisProcess(); }
  static uint64_t claimOfThisProcess() { return uint64_t{1} + base::ForkGate::generation(); }
  void release();
  // The same for a caller that holds mutex_.
  void releaseLocked();
  Status checkComplete() const;
  // Gives the next run a scope for its strings, which keeps those of its inputs as well.
  Status renewStrings();
  // Replaces an argument and what is bound to it. The caller has the claim.
  void setArgument(hal::Argument argument, hal::Argument* to);
  Status bind(unsigned side);
  // The same, with states where another device can read them if the first one fails.
  Status bindAnywhere(unsigned side);
  // Computes, after binding where nothing is bound.
  hal::ExecutionResult computeOn(unsigned side, const base::Deadline& deadline);
  // After a failure: whether another device may succeed now that it can read the states, which the
  // device has given back.
  bool leaveDevices(const Error& error);
  // run() within the scope of the run's strings.
  hal::ExecutionResult runBound(const base::Deadline& deadline);
  // What follows a computation that read this side and has this result.
  void end(unsigned side, hal::ExecutionResult& result);
  // Runs once, notes how that went, and releases `released` if it is not null.
  Status runAndNote(const Claim& claim, const base::Deadline& deadline, Claim* released);

  const std::shared_ptr<const Compilation> compilation_;
  StateBuffers states_;
  hal::Request request_;  // without state arguments
  bool isWhole_ = false;  // whether setRequest() set request_
  // Requests bound by the driver, for each side of the state; dropped when an argument changes.
  std::array<std::unique_ptr<hal::Execution>, 2> bound_;
  std::array<std::vector<memory::PoolRef>, 2> boundMemories_;  // that their arguments lie in
  std::unique_ptr<memory::StringScope> strings_;               // of the last run; null without any

  // 0 when nobody has the claim, else claimOfThisProcess() of the process that claimed it. Taken
  // without a lock, given back with mutex_ held, so that waitUntilIdle() does not miss it.
  std::atomic<uint64_t> claimedIn_ = 0;
  mutable base::Mutex mutex_;  // for the members below; the claim protects those above
  mutable base::Condition idle_;
  hal::OutputShapes outputShapes_;
  Statistics statistics_;
};

}  // namespace hearth::runtime
