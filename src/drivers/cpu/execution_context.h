// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "drivers/cpu/kernel.h"
#include "drivers/cpu/plan.h"
#include "memory/mapping.h"

namespace hearth::cpu {

// Everything that one inference at a time needs: the kernels of a plan, activation memory, scratch.
// Used by one thread at a time. The plan and its weights must outlive it.
class ExecutionContext {
 public:
  // Makes and reshapes all kernels, in parallel where weights are packed. A kernel that XNNPACK
  // refuses is reported through `refused` (operation indices); the error is then kUnsupported.
  static Result<std::unique_ptr<ExecutionContext>> create(const Plan& plan,
                                                          threads::ThreadPool* pool, bool packs,
                                                          std::vector<uint32_t>* refused);

  // Runs the plan on the client's memory: one pointer and size for each graph input and output. An
  // output may be an input's memory, as for the caches of language models: it is written in place
  // where nobody reads the input afterwards, and else the input is copied first.
  struct Buffer {
    void* data = nullptr;  // null: an output that nobody wants
    uint64_t bytes = 0;
    bool hasReadableTail = false;  // kReadSlack bytes behind it can be read
  };
  Status run(std::span<const Buffer> inputs, std::span<const Buffer> outputs,
             threads::ThreadPool* pool, const base::Deadline& deadline);

 private:
  explicit ExecutionContext(const Plan& plan) : plan_(plan) {}
  Status bind(std::span<const Buffer> inputs, std::span<const Buffer> outputs);
  Status setup();
  void findInPlacePairs();
  bool isOverwritten(size_t input, const Buffer& buffer, std::span<const Buffer> outputs) const;
  Result<void*> staging(std::vector<memory::Mapping>* list, size_t index, uint64_t bytes);

  const Plan& plan_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  memory::Mapping arena_;
  memory::Mapping workspace_;
  std::vector<void*> addresses_;    // by value
  std::vector<void*> boundInputs_;  // what the kernels were set up with
  std::vector<void*> boundOutputs_;
  std::vector<memory::Mapping> inputStaging_;
  std::vector<memory::Mapping> outputStaging_;
  std::vector<uint64_t> outputWriteSlack_;  // by graph output: bytes that a kernel writes behind it
  std::vector<bool> outputIsRead_;          // by graph output: a later node reads it
  std::vector<bool> touchesClient_;         // by node
  // By graph input: outputs that may be written to its memory.
  std::vector<std::vector<bool>> mayOverwrite_;
  bool isSetUp_ = false;
};

}  // namespace hearth::cpu
