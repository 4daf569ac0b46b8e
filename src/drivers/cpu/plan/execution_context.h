// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "drivers/cpu/plan/activation_memory.h"
#include "drivers/cpu/plan/kernel_factory.h"
#include "drivers/cpu/plan/plan.h"

namespace hearth::hal {
class Progress;
}

namespace hearth::cpu {

// Everything that one execution at a time needs: the kernels of an execution graph and, while it
// runs, memory for activations and scratch. Used by one thread at a time. The plan and its weights
// must outlive it. The memory counts for whom it was first needed (memory::reserveRoom()).
class ExecutionContext {
 public:
  // Bytes of client memory that executions on this thread have copied because kernels cannot use
  // them in place.
  static uint64_t copiedBytes();

  // `kernels` makes the kernels of `plan`, and may still be making them. A run takes its memory
  // from `memory`; null is memory of the context's own.
  static Result<std::unique_ptr<ExecutionContext>> create(
      const Plan& plan, std::shared_ptr<KernelFactory> kernels,
      std::shared_ptr<ActivationMemory> memory = nullptr);

  const Plan& plan() const { return plan_; }
  const KernelFactory& kernels() const { return *kernels_; }
  const std::shared_ptr<ActivationMemory>& memory() const { return memory_; }

  // Whether a graph output may be written to the memory of an input without a copy of the input.
  bool mayOverwrite(size_t input, size_t output) const {
    return input >= mayOverwrite_.size() || output >= mayOverwrite_[input].size() ||
           mayOverwrite_[input][output];
  }

  // One graph input or output in the client's memory.
  struct Buffer {
    void* data = nullptr;  // null: an output that the client does not want
    uint64_t bytes = 0;
    bool hasReadableTail = false;  // kReadSlack bytes behind it can be read

    bool operator==(const Buffer&) const = default;
  };
  // A run that is measured. The context's own kernels are the first ones of the nodes; `choices`
  // says how each node runs, `others` has the other kernels, and `times` gets the nanoseconds of
  // each node.
  struct Measurement {
    const KernelChoices& choices;
    KernelFactory* others = nullptr;
    std::span<uint64_t> times;
  };
  // Runs the execution graph, with one buffer for each graph input and output. An output may have
  // the memory of an input, as for the caches of language models: it is written in place where no
  // node reads the input afterwards; otherwise the input is copied first. Errors: of kernels;
  // kMissedDeadlineTransient; kUnsupported when XNNPACK refuses an operation whose kernel is made
  // during this run: the inputs are unchanged then.
  Status run(std::span<const Buffer> inputs, std::span<const Buffer> outputs,
             threads::ThreadPool* pool, const base::Deadline& deadline,
             const Measurement* measurement = nullptr);
  // The same within a run of another context, whose progress alone counts.
  Status runInside(std::span<const Buffer> inputs, std::span<const Buffer> outputs,
                   threads::ThreadPool* pool, const base::Deadline& deadline);

  // The version of its ContextPool that it belongs to.
  uint64_t poolVersion() const { return poolVersion_; }
  void setPoolVersion(uint64_t version) { poolVersion_ = version; }

  // Whether the kernels are set up for some buffers.
  bool isBound() const { return isBound_; }
  // Whether the kernels are set up for these buffers, so that a run with them binds nothing.
  bool isBoundTo(std::span<const Buffer> inputs, std::span<const Buffer> outputs) const {
    return isBound_ && bound_.areThese(inputs, outputs);
  }
  // The same of the buffers before the present ones, if there were any.
  bool wasBoundTo(std::span<const Buffer> inputs, std::span<const Buffer> outputs) const {
    const bool hasBuffers = !inputs.empty() || !outputs.empty();
    return isBound_ && hasBuffers && boundBefore_.areThese(inputs, outputs);
  }

 private:
  struct Buffers {
    std::vector<Buffer> inputs;
    std::vector<Buffer> outputs;

    bool areThese(std::span<const Buffer> otherInputs, std::span<const Buffer> otherOutputs) const {
      return std::ranges::equal(inputs, otherInputs) && std::ranges::equal(outputs, otherOutputs);
    }
  };
  // A node's kernel, and whether it runs on the calling thread alone.
  struct Step {
    Kernel* kernel;
    bool isSerial;
  };
  // Gives the memory back when a run ends.
  class MemoryOfRun {
   public:
    explicit MemoryOfRun(ExecutionContext& context) : context_(context) {}
    ~MemoryOfRun() { context_.giveMemoryBack(); }
    MemoryOfRun(const MemoryOfRun&) = delete;
    MemoryOfRun& operator=(const MemoryOfRun&) = delete;

   private:
    ExecutionContext& context_;
  };

  using Area = std::shared_ptr<const ActivationMemory::Area>;

  ExecutionContext(const Plan& plan, std::shared_ptr<KernelFactory> kernels,
                   std::shared_ptr<ActivationMemory> memory)
      : plan_(plan), kernels_(std::move(kernels)), memory_(std::move(memory)) {}
  // run() while a run of the pool is active, of this context or of the one around it.
  Status runActive(std::span<const Buffer> inputs, std::span<const Buffer> outputs,
                   threads::ThreadPool* pool, const base::Deadline& deadline,
                   const Measurement* measurement);
  // Whether block_ is as it was at the end of the last run.
  bool hasMemoryOfLastRun() const;
  // Takes other memory where that of the last run is in use. Kernels are set up anew for it.
  Status takeOtherMemory();
  void giveMemoryBack();
  // Makes all kernels before the first of them runs, where one may overwrite an input: a run in
  // which XNNPACK refuses an operation is repeated.
  Status makeKernelsFor(std::span<const Buffer> inputs, std::span<const Buffer> outputs);
  // Sets the kernels up for other buffers than those of the last run.
  Status bind(std::span<const Buffer> inputs, std::span<const Buffer> outputs);
  void copyInputs(std::span<const Buffer> inputs);
  // Runs the nodes one after the other, building and setting up kernels where that is to be done.
  Status runNodes(threads::ThreadPool* pool, const base::Deadline& deadline,
                  hal::Progress* progress, const Measurement* measurement);
  // Runs the nodes when that is done.
  Status runSteps(threads::ThreadPool* pool, const base::Deadline& deadline,
                  hal::Progress* progress);
  // That a run ends before the node, since its deadline has passed or it is cancelled.
  std::unexpected<Error> ended(size_t node, const base::Deadline& deadline) const;
  void resolveAddresses();
  Status setUp(const KernelFactory& maker, size_t node, Kernel* kernel);
  Result<void*> workspaceFor(const KernelFactory& maker, size_t node);
  Status runMeasured(size_t node, threads::ThreadPool* pool, const Measurement& measurement);
  void findInPlacePairs();
  bool isOverwritten(size_t input, const Buffer& buffer, std::span<const Buffer> outputs) const;
  static Result<void*> staging(std::vector<Area>* list, size_t index, uint64_t bytes);
  void forgetSetups();

  const Plan& plan_;
  const std::shared_ptr<KernelFactory> kernels_;
  const std::shared_ptr<ActivationMemory> memory_;
  uint64_t poolVersion_ = 0;
  ActivationMemory::OwnBlock block_;  // during a run
  // Scratch memory grows while kernels are made. Kernels that were set up with a smaller one keep
  // it until the run ends.
  std::vector<Area> outgrown_;
  // What kernels were set up with. Other memory may have come to the same address since.
  const void* arenaAddress_ = nullptr;
  const void* scratchAddress_ = nullptr;
  uint64_t scratchBytes_ = 0;
  std::vector<void*> addresses_;    // by value
  std::vector<void*> boundInputs_;  // addresses that the kernels were set up with
  std::vector<void*> boundOutputs_;
  std::vector<Area> inputStaging_;
  std::vector<Area> outputStaging_;
  std::vector<uint64_t> outputWriteSlack_;  // by graph output: bytes that a kernel writes behind it
  std::vector<bool> outputIsRead_;          // by graph output: a later node reads it
  std::vector<bool> touchesClient_;         // by node
  std::vector<bool> isSetUp_;               // by node
  // By graph input and output: whether the output may be written to the input's memory.
  std::vector<std::vector<bool>> mayOverwrite_;
  // The buffers that the kernels are set up for, if any.
  bool isBound_ = false;
  Buffers bound_;
  Buffers boundBefore_;
  std::vector<Step> steps_;     // by node; empty until all kernels have run
  bool stepsAreSetUp_ = false;  // for those buffers
};

}  // namespace hearth::cpu
