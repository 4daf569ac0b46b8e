// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "android/NeuralNetworksTypes.h"
#include "base/deadline.h"
#include "base/mutex.h"
#include "base/result.h"
#include "frontends/nnapi/objects/compilation.h"
#include "frontends/nnapi/objects/memory.h"
#include "hal/device.h"
#include "runtime/event.h"
#include "runtime/execution.h"

namespace hearth::nnapi {

// Default and maximum of the time that a WHILE may take, in nanoseconds.
inline constexpr uint64_t kDefaultLoopTimeout = 2'000'000'000;
inline constexpr uint64_t kMaxLoopTimeout = 15'000'000'000;

// Only one computation of a burst runs at a time.
struct Burst {
  const std::shared_ptr<const runtime::Compilation> compiled;
  std::atomic<bool> isBusy = false;
};

// Holds arguments and computes with them once or, if reusable, repeatedly. Thread-safe; if several
// threads start a computation at once, one succeeds and the others get kBadState.
class Execution : public std::enable_shared_from_this<Execution> {
 public:
  static Result<std::shared_ptr<Execution>> create(
      std::shared_ptr<const runtime::Compilation> compiled);

  // `type` may be null; only its dimensions count. kBadData when index, type or length is wrong.
  // kBadState once a computation has started (unless the execution is reusable and not in flight),
  // and for an argument that is set already (unless it is reusable).
  Status setInput(int32_t index, const ANeuralNetworksOperandType* type, const void* buffer,
                  size_t length);
  Status setOutput(int32_t index, const ANeuralNetworksOperandType* type, void* buffer,
                   size_t length);
  Status setInputFromMemory(int32_t index, const ANeuralNetworksOperandType* type,
                            std::shared_ptr<Memory> memory, const MemoryRange& range);
  Status setOutputFromMemory(int32_t index, const ANeuralNetworksOperandType* type,
                             std::shared_ptr<Memory> memory, const MemoryRange& range);

  // setReusable() is for the time before the first computation, enablePadding() before the first
  // argument, the others while arguments may be set; else kBadState. setMeasureTiming() and
  // setTimeout() need exactly one listed device, else kBadData. Durations are in nanoseconds; a
  // loop time-out above the maximum becomes the maximum.
  Status setReusable(bool isReusable);
  Status enablePadding(bool isEnabled);
  Status setMeasureTiming(bool isMeasured);
  Status setTimeout(uint64_t duration);
  Status setLoopTimeout(uint64_t duration);

  // Wrong arguments leave the execution as it was: kBadData for an argument that is not set,
  // kOpFailed for a memory that cannot be used. Any other failure uses the execution up.

  // Computes in the calling thread.
  Status compute();
  Status burstCompute(Burst& burst);
  // Computes in a thread of the scheduler, which keeps this object alive.
  Result<std::shared_ptr<runtime::Event>> start();
  // Like start(), but after all dependencies, and within `duration` nanoseconds from then on (0 =
  // no limit). kBadData for an output of unknown size.
  Result<std::shared_ptr<runtime::Event>> startAfter(
      std::span<const std::shared_ptr<runtime::Event>> dependencies, uint64_t duration);

  // The shape of an output after the last computation, and whether its buffer was large enough.
  // kBadState when there was no computation, or it failed for another reason than a small buffer.
  struct OutputShape {
    graph::Dimensions dimensions;
    bool isSufficient = true;
  };
  Result<OutputShape> outputShape(int32_t index) const;
  bool isScalarOutput(int32_t index) const;
  // Nanoseconds; UINT64_MAX if the driver did not measure. kBadState when the execution has not
  // computed, failed or does not measure; kBadData for an unknown code.
  Result<uint64_t> duration(int32_t code) const;

  // Always fails, since no device knows an attribute: kBadState once a computation has started,
  // else kBadData.
  Status addAttribute(const char* extension, uint16_t code) const;

 private:
  using Claim = runtime::Execution::Claim;

  struct Slot {
    bool isSet = false;
    hal::Argument argument;  // complete unless there is a memory
    std::shared_ptr<Memory> memory;
    MemoryRange range;
    // Combined from the model, the type argument and the device memory.
    graph::Dimensions dimensions;
    bool isSizeKnown = false;
  };

  static bool isOmitted(const Slot& slot) {
    return slot.memory == nullptr && slot.argument.kind == hal::Argument::Kind::kNoValue;
  }

  Status requireChangeable() const;
  Result<Slot*> slotToSet(std::vector<Slot>* slots, int32_t index, const char* side);
  Result<graph::Dimensions> specify(const graph::Operand& operand,
                                    const ANeuralNetworksOperandType* type) const;
  Result<Slot> prepareSlot(const graph::Operand& operand, const ANeuralNetworksOperandType* type,
                           bool isInput, bool isOmitted) const;
  Result<uint64_t> fitLength(const graph::Operand& operand, const Slot& slot, bool isInput,
                             uint64_t length) const;
  Status setPointer(bool isInput, int32_t index, const ANeuralNetworksOperandType* type,
                    void* buffer, size_t length);
  Status setMemory(bool isInput, int32_t index, const ANeuralNetworksOperandType* type,
                   std::shared_ptr<Memory> memory, const MemoryRange& range);
  void store(Slot* slot, Slot value);

  explicit Execution(std::shared_ptr<runtime::Execution> runs);

  // A computation that has claimed the execution.
  struct Begun {
    Claim claim;
    base::Deadline deadline;
  };
  Result<Begun> begin(bool collectsNow);
  Status checkComplete() const;
  // How far the dependencies of a computation are.
  enum class Dependencies { kDone, kInFlight };
  // Passes the arguments to the runtime, unless the driver has them already. Dependencies in flight
  // may still have to write inputs.
  Status collect(const Claim& claim, Dependencies dependencies = Dependencies::kDone);
  Result<hal::Argument> argumentOf(const Slot& slot, const graph::Operand& operand, bool isInput,
                                   Dependencies dependencies) const;
  // Starts the computation on the device, which waits for the dependencies there, and takes the
  // claim. Null where that is not possible; then nothing has begun.
  std::shared_ptr<runtime::Event> startOnDevice(
      Claim& claim, std::span<const std::shared_ptr<runtime::Event>> dependencies,
      uint64_t duration);
  Status finishOnDevice(const Claim& claim, const Status& isReady) noexcept;
  // Whether output memories grew that were too small for this result, so that another computation
  // can succeed.
  Result<bool> growOutputs(const hal::ExecutionResult& result) const;
  // Computes, and again as long as output memories grow.
  hal::ExecutionResult runGrowing(const Claim& claim, const base::Deadline& deadline);
  // These return the result of the computation, which is then over.
  Status run(const Claim& claim, const base::Deadline& deadline) noexcept;
  Status end(hal::ExecutionResult result) noexcept;
  Status abandon(Error error) noexcept;

  // In flight from begin() until its claim is released.
  const std::shared_ptr<runtime::Execution> runs_;
  const runtime::Compilation* const compiled_;  // owned by runs_
  mutable base::Mutex mutex_;                   // protects the members below
  bool isDone_ = false;                         // a computation has ended
  bool hasChanged_ = false;                     // arguments, since collect()
  bool isReusable_ = false;
  bool isPadded_ = false;
  bool isMeasured_ = false;
  bool hasArguments_ = false;
  bool hasMemories_ = false;  // some argument is a memory, asked anew for each computation
  uint64_t timeout_ = 0;
  uint64_t loopTimeout_ = kDefaultLoopTimeout;
  std::vector<Slot> inputs_;
  std::vector<Slot> outputs_;
  std::optional<ErrorCode> failure_;  // of the last computation
  hal::OutputShapes shapes_;
  hal::Timing timing_;
};

}  // namespace hearth::nnapi

struct ANeuralNetworksExecution {
  const std::shared_ptr<hearth::nnapi::Execution> execution;
};

struct ANeuralNetworksBurst final : hearth::nnapi::Burst {};

struct ANeuralNetworksEvent {
  const std::shared_ptr<hearth::runtime::Event> event;
  const bool hasFence;
};
