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

// How long a WHILE may take, in nanoseconds: unless told otherwise, and at most.
inline constexpr uint64_t kDefaultLoopTimeout = 2'000'000'000;
inline constexpr uint64_t kMaxLoopTimeout = 15'000'000'000;

// Only one computation of a burst runs at a time.
struct Burst {
  const std::shared_ptr<const runtime::Compilation> compiled;
  std::atomic<bool> isBusy = false;
};

// Arguments, and one computation with them or, if reusable, one after another. Thread-safe; of
// computations that are started at once one wins and the others are kBadState.
class Execution : public std::enable_shared_from_this<Execution> {
 public:
  static Result<std::shared_ptr<Execution>> create(
      std::shared_ptr<const runtime::Compilation> compiled);

  // `type` may be null; of a valid one only the dimensions count. kBadData for index, type or
  // length, kBadState once a computation started (unless reusable and not in flight) and for an
  // argument that is set already.
  Status setInput(int32_t index, const ANeuralNetworksOperandType* type, const void* buffer,
                  size_t length);
  Status setOutput(int32_t index, const ANeuralNetworksOperandType* type, void* buffer,
                   size_t length);
  Status setInputFromMemory(int32_t index, const ANeuralNetworksOperandType* type,
                            std::shared_ptr<Memory> memory, const MemoryRange& range);
  Status setOutputFromMemory(int32_t index, const ANeuralNetworksOperandType* type,
                             std::shared_ptr<Memory> memory, const MemoryRange& range);

  // Before the first computation; padding before the first argument, too.
  Status setReusable(bool isReusable);
  Status enablePadding(bool isEnabled);
  Status setMeasureTiming(bool isMeasured);
  Status setTimeout(uint64_t duration);
  Status setLoopTimeout(uint64_t duration);

  // What is wrong with the arguments leaves the execution as it was: kBadData for one that is not
  // set, kOpFailed for a memory that cannot be used. Any other failure uses it up.

  // In this thread.
  Status compute();
  Status burstCompute(Burst& burst);
  // In a thread of the scheduler, which keeps this alive.
  Result<std::shared_ptr<runtime::Event>> start();
  // The same after all dependencies, within `duration` from then on (0 = no limit). kBadData for an
  // output whose size nobody has given.
  Result<std::shared_ptr<runtime::Event>> startAfter(
      std::span<const std::shared_ptr<runtime::Event>> dependencies, uint64_t duration);

  // Of the last computation: the shape of an output, and whether its buffer was large enough (which
  // makes the caller's code). kBadState when there is none or it failed otherwise.
  struct OutputShape {
    graph::Dimensions dimensions;
    bool isSufficient = true;
  };
  Result<OutputShape> outputShape(int32_t index) const;
  bool isScalarOutput(int32_t index) const;
  // Nanoseconds, UINT64_MAX when not measured.
  Result<uint64_t> duration(int32_t code) const;

  // No device knows one: kBadState once a computation started, else kBadData.
  Status addAttribute(const char* extension, uint16_t code) const;

 private:
  using Claim = runtime::Execution::Claim;

  struct Slot {
    bool isSet = false;
    hal::Argument argument;  // complete unless there is a memory
    std::shared_ptr<Memory> memory;
    MemoryRange range;
    // Of the model, the type argument and a device memory together.
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

  // A computation that is about to start.
  struct Begun {
    Claim claim;
    base::Deadline deadline;
  };
  Result<Begun> begin(bool collectsNow);
  Status checkComplete() const;
  // Gives the runtime the arguments, unless the driver has them already.
  Status collect(const Claim& claim);
  Result<hal::Argument> argumentOf(const Slot& slot, const graph::Operand& operand,
                                   bool isInput) const;
  // The computation is over when these return, with its result.
  Status run(const Claim& claim, const base::Deadline& deadline) noexcept;
  Status end(hal::ExecutionResult result) noexcept;
  Status abandon(Error error) noexcept;

  // In flight from begin() until its claim is released.
  const std::shared_ptr<runtime::Execution> runs_;
  const runtime::Compilation* const compiled_;  // of runs_
  mutable base::Mutex mutex_;                   // of the members below
  bool isDone_ = false;                         // a computation has ended
  bool hasChanged_ = false;                     // arguments, since collect()
  bool isReusable_ = false;
  bool isPadded_ = false;
  bool isMeasured_ = false;
  bool hasArguments_ = false;
  bool hasMemories_ = false;  // that are asked anew for each computation
  uint64_t timeout_ = 0;
  uint64_t loopTimeout_ = kDefaultLoopTimeout;
  std::vector<Slot> inputs_;
  std::vector<Slot> outputs_;
  std::optional<ErrorCode> failure_;  // of the last computation
  std::vector<hal::OutputShape> shapes_;
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
