// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/mutex.h"
#include "base/result.h"
#include "hal/device.h"
#include "runtime/compilation.h"
#include "runtime/event.h"
#include "runtime/scheduler.h"
#include "runtime/state_buffers.h"

namespace hearth::runtime {

struct Statistics {
  uint64_t runs = 0;         // that succeeded
  uint64_t lastNs = 0;       // wall time of the last one, from request to result
  hal::Timing timing;        // of the last one, as the driver measured it
  uint64_t copiedBytes = 0;  // of arguments, in the last one
};

// The arguments and the state of one run after another. A run is in flight from the time when a
// thread claims the execution until that claim is released. Thread-safe; calls that need the
// execution for themselves fail with kBadState while a run is in flight.
class Execution : public std::enable_shared_from_this<Execution> {
 public:
  // The right to use the execution. Releases it when destroyed, unless it belongs to a process that
  // this one was forked from. Move-only; the execution outlives it.
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
    Execution* execution_;
  };

  static Result<std::shared_ptr<Execution>> create(std::shared_ptr<const Compilation> compilation);

  const Compilation& compilation() const { return *compilation_; }

  // Sets an argument, of kind kPointer or kPool, which is used in place until it is replaced.
  // kBadData says how index, dimensions or length differ from the model's.
  Status setInput(size_t index, hal::Argument argument);
  Status setOutput(size_t index, hal::Argument argument);

  // Runs in this thread. State advances only when the run succeeds.
  Status compute(const base::Deadline& deadline);
  // Runs in a thread of the scheduler, which keeps this alive.
  Result<std::shared_ptr<Event>> start(const base::Deadline& deadline, Scheduler& scheduler);
  // Returns when no run is in flight.
  void waitUntilIdle() const;

  Status resetState();
  // Of the last run that got as far as shapes. kBadState before the first.
  Result<graph::Dimensions> outputShape(size_t index) const;
  Statistics statistics() const;

  // What follows is for front ends that have rules of their own for arguments and results. Such a
  // front end does not use the functions above, but for create().

  Result<Claim> claim();
  bool isInFlight() const;
  // Whether the driver has the arguments of the next run.
  bool isBound(const Claim& /*claim*/) const { return bound_[states_.current()] != nullptr; }
  // Takes all arguments of the following runs.
  void setRequest(const Claim& claim, hal::Request request);
  // One run; state advances when it succeeds.
  hal::ExecutionResult run(const Claim& claim, const base::Deadline& deadline);

  // Calls `work` in a thread of the scheduler. The claim is released after it, and then the event
  // completes with its result. What `work` throws is its result, too. An error of schedule() says
  // that `work` is not called.
  using Work = std::function<Status(const Claim&)>;
  Result<std::shared_ptr<Event>> schedule(Claim claim, Work work, Scheduler& scheduler);

  // The same once all dependencies are complete, with a deadline `duration` nanoseconds after that
  // (0 = none). When one of them failed, or no thread can be had, `work` is called with that error,
  // in any thread, and has only to return the result.
  using DependentWork =
      std::function<Status(const Claim&, const base::Deadline&, const Status& isReady)>;
  Result<std::shared_ptr<Event>> scheduleAfter(Claim claim,
                                               std::span<const std::shared_ptr<Event>> dependencies,
                                               uint64_t duration, DependentWork work,
                                               Scheduler& scheduler);

 private:
  explicit Execution(std::shared_ptr<const Compilation> compilation)
      : compilation_(std::move(compilation)) {}

  // Whether a thread of this process has the claim. mutex_ is held.
  bool isClaimedHere() const;
  void release();
  Status checkComplete() const;
  Status bind(unsigned side);
  Status runAndNote(const Claim& claim, const base::Deadline& deadline);

  const std::shared_ptr<const Compilation> compilation_;
  StateBuffers states_;
  hal::Request request_;  // without state arguments
  bool isWhole_ = false;  // whether request_ came by setRequest()
  // Requests bound by the driver, for each side of the state; dropped when an argument changes.
  std::array<std::unique_ptr<hal::Execution>, 2> bound_;

  mutable base::Mutex mutex_;  // of the members below; those above belong to the claim's holder
  mutable base::Condition idle_;
  bool isClaimed_ = false;
  uint32_t claimedIn_ = 0;  // base::ForkGate::generation()
  std::vector<hal::OutputShape> outputShapes_;
  Statistics statistics_;
};

}  // namespace hearth::runtime
