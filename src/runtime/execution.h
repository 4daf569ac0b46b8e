// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <mutex>
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

// Arguments and state of one run after another. Calls from several threads are safe but refused
// with kBadState while a run is in flight.
class Execution : public std::enable_shared_from_this<Execution> {
 public:
  static Result<std::shared_ptr<Execution>> create(std::shared_ptr<const Compilation> compilation);

  const Compilation& compilation() const { return *compilation_; }

  // `argument` is of kind kPointer or kPool and used in place until it is replaced. kBadData says
  // how index, dimensions or length differ from the model's.
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

 private:
  explicit Execution(std::shared_ptr<const Compilation> compilation)
      : compilation_(std::move(compilation)) {}

  // Whether a thread of this process has it. mutex_ is held.
  bool isInFlight() const;

  // This thread's leave to use the execution, given back when it is destroyed.
  class Claim {
   public:
    explicit Claim(Execution* execution) : execution_(execution) {}
    Claim(Claim&& other) noexcept : execution_(std::exchange(other.execution_, nullptr)) {}
    ~Claim() {
      if (execution_ != nullptr) execution_->release();
    }
    // Somebody else calls release().
    void keep() { execution_ = nullptr; }

   private:
    Execution* execution_;
  };

  Result<Claim> claim();
  void release();
  Status runClaimed(const base::Deadline& deadline);
  Status bind(unsigned side);

  const std::shared_ptr<const Compilation> compilation_;
  StateBuffers states_;
  hal::Request request_;  // without state arguments
  // Requests bound by the driver, for each side of the state; dropped when an argument changes.
  std::array<std::unique_ptr<hal::Execution>, 2> bound_;

  mutable base::Mutex mutex_;  // of what follows; the rest belongs to whoever claimed the execution
  mutable base::Condition idle_;
  bool isClaimed_ = false;
  uint32_t claimedIn_ = 0;  // base::ForkGate::generation()
  std::vector<hal::OutputShape> outputShapes_;
  Statistics statistics_;
};

}  // namespace hearth::runtime
