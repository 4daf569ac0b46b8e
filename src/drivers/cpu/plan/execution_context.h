// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "drivers/cpu/plan/kernel_factory.h"
#include "drivers/cpu/plan/plan.h"
#include "memory/mapping.h"

namespace hearth::cpu {

// Everything that one inference at a time needs: the kernels of a plan, activation memory, scratch.
// Used by one thread at a time. The plan and its weights must outlive it.
class ExecutionContext {
 public:
  // Bytes of client memory that executions in this thread copied, because kernels cannot use them
  // where they lie.
  static uint64_t copiedBytes();

  // `kernels` makes those of `plan`, which it belongs to, and may still be at it.
  static Result<std::unique_ptr<ExecutionContext>> create(const Plan& plan,
                                                          std::shared_ptr<KernelFactory> kernels);

  const Plan& plan() const { return plan_; }
  const KernelFactory& kernels() const { return *kernels_; }
  // The memory of the tensors between the operations, for who lets the kernel clear its pages
  // before the first run does.
  const std::shared_ptr<const memory::Mapping>& arena() const { return arena_; }

  // Runs the plan on the client's memory: one pointer and size for each graph input and output. An
  // output may be an input's memory, as for the caches of language models: it is written in place
  // where nobody reads the input afterwards, and else the input is copied first. kUnsupported when
  // XNNPACK refuses an operation whose kernel is made only now: the inputs are as they were then.
  struct Buffer {
    void* data = nullptr;  // null: an output that nobody wants
    uint64_t bytes = 0;
    bool hasReadableTail = false;  // kReadSlack bytes behind it can be read
  };
  // A run that is measured: how each node runs in it (all kernels of the context being the first
  // ones), who has the other kernels, and where the nanoseconds that each node took are to go.
  struct Measurement {
    const KernelChoices& choices;
    KernelFactory* others = nullptr;
    std::span<uint64_t> times;
  };
  Status run(std::span<const Buffer> inputs, std::span<const Buffer> outputs,
             threads::ThreadPool* pool, const base::Deadline& deadline,
             const Measurement* measurement = nullptr);

 private:
  ExecutionContext(const Plan& plan, std::shared_ptr<KernelFactory> kernels)
      : plan_(plan), kernels_(std::move(kernels)) {}
  Status bind(std::span<const Buffer> inputs, std::span<const Buffer> outputs);
  void resolveAddresses();
  Status setUp(const KernelFactory& maker, size_t node, Kernel* kernel);
  Result<void*> workspaceFor(const KernelFactory& maker, size_t node);
  Status runMeasured(size_t node, threads::ThreadPool* pool, const Measurement& measurement);
  void findInPlacePairs();
  bool isOverwritten(size_t input, const Buffer& buffer, std::span<const Buffer> outputs) const;
  Result<void*> staging(std::vector<memory::Mapping>* list, size_t index, uint64_t bytes);

  const Plan& plan_;
  const std::shared_ptr<KernelFactory> kernels_;
  std::shared_ptr<const memory::Mapping> arena_;
  // Scratch memory grows while kernels are made; those that were set up with a smaller one keep it
  // until the run ends.
  memory::Mapping workspace_;
  uint64_t workspaceBytes_ = 0;
  std::vector<memory::Mapping> outgrown_;
  std::vector<void*> addresses_;    // by value
  std::vector<void*> boundInputs_;  // what the kernels were set up with
  std::vector<void*> boundOutputs_;
  std::vector<memory::Mapping> inputStaging_;
  std::vector<memory::Mapping> outputStaging_;
  std::vector<uint64_t> outputWriteSlack_;  // by graph output: bytes that a kernel writes behind it
  std::vector<bool> outputIsRead_;          // by graph output: a later node reads it
  std::vector<bool> touchesClient_;         // by node
  std::vector<bool> isSetUp_;               // by node
  // By graph input: outputs that may be written to its memory.
  std::vector<std::vector<bool>> mayOverwrite_;
  bool isBound_ = false;
};

}  // namespace hearth::cpu
