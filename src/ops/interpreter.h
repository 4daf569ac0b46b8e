// SPDX-License-Identifier: Apache-2.0
// Runs a model operation by operation. Dimensions, ranks, branches and the number of iterations may
// all be unknown before the run.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/deadline.h"
#include "base/mutex.h"
#include "base/result.h"
#include "graph/model.h"
#include "ops/aligned_constants.h"
#include "ops/operation.h"
#include "ops/reference/kernels.h"

namespace hearth::ops {

// One argument of a run. The memory is the caller's; inputs are only read, outputs only written.
struct RunArgument {
  void* data = nullptr;
  uint64_t length = 0;    // bytes at `data`
  Dimensions dimensions;  // inputs: complete. Outputs: 0 or empty = whatever the run gives
  bool isPresent = false;
  bool hasReadableTail = false;  // as of hal::Argument
};

// Shape of one output of the main subgraph after a run.
struct RunOutputShape {
  Dimensions dimensions;
  bool isSufficient = true;  // its argument was large enough
};

struct RunResult {
  Status status;
  // One for each output, for success and kOutputInsufficientSize.
  std::vector<RunOutputShape> outputShapes;
};

// NNAPI's default for the time that one WHILE may take.
inline constexpr uint64_t kDefaultLoopTimeoutNanoseconds = 2'000'000'000;

// Gives memory to outputs that do not fit their arguments.
class OutputRoom {
 public:
  virtual ~OutputRoom() = default;
  // At least `bytes` bytes for an output, which must stay valid until the run has ended.
  virtual Result<void*> make(size_t output, uint64_t bytes) = 0;
};

struct RunOptions {
  base::Deadline deadline;
  uint64_t loopTimeoutNanoseconds = kDefaultLoopTimeoutNanoseconds;
  // Null: a run with an output that does not fit ends with kOutputInsufficientSize. Otherwise such
  // an output is written to memory of its own, and RunOutputShape::isSufficient tells of it.
  OutputRoom* room = nullptr;
};

// Which kernels compute: the fast ones (OperationDefinition::execute) or the reference kernels
// (ops/reference/kernels.h). An operation without a reference kernel runs the fast one.
enum class KernelSet { kFast, kReference };

struct InterpreterOptions {
  uint64_t maxActivationBytes = 0;  // 0 = no limit; counts temporaries, not the caller's memory
  std::shared_ptr<threads::ThreadPool> threadPool;  // null: kernels run in the calling thread
  KernelSet kernels = KernelSet::kFast;
};

// A model ready to be interpreted. Thread-safe: concurrent runs have a state each.
class Interpreter {
 public:
  // The model passed graph::validate() and validateOperations(). kUnsupported for an operation
  // without kernel or control flow nested too deeply; kOutOfMemory when the tensors whose sizes are
  // known exceed the limit, naming the one that does.
  static Result<std::shared_ptr<const Interpreter>> create(
      std::shared_ptr<const graph::Model> model, InterpreterOptions options);

  ~Interpreter();

  // Arguments in the order of the main subgraph's inputs and outputs, one for each, with lengths
  // that fit the dimensions of the inputs (kBadData otherwise). An output that is too small is not
  // written; the run goes on to find all shapes and ends with kOutputInsufficientSize. An omitted
  // output is computed and dropped. kMissedDeadlineTransient when the deadline has passed before an
  // operation, or a loop exceeds its time; kOutOfMemory for temporaries over the limit.
  RunResult run(const std::vector<RunArgument>& inputs, const std::vector<RunArgument>& outputs,
                const RunOptions& options) const;

  // Peak of the temporaries whose sizes are known before a run.
  uint64_t activationBytes() const { return activationBytes_; }

 private:
  friend class InterpreterRun;
  struct Step {
    const OperationDefinition* definition = nullptr;
    reference::Kernel referenceKernel = nullptr;  // null: definition->execute computes
    std::vector<uint32_t> lastUses;               // operands that nothing reads after this step
  };
  struct SubgraphPlan {
    std::vector<Step> steps;
    std::vector<uint8_t*> constants;  // by operand; null for all else
    uint64_t activationBytes = 0;     // peak while it runs, nested subgraphs included
  };
  struct SubgraphState;

  Interpreter(std::shared_ptr<const graph::Model> model, InterpreterOptions options);
  Status plan();
  Status planSubgraph(size_t index);
  Status planActivations(size_t index, std::vector<uint8_t>* isPlanned);
  std::unique_ptr<SubgraphState> takeState(size_t subgraph) const;
  void giveState(size_t subgraph, std::unique_ptr<SubgraphState> state) const;

  std::shared_ptr<const graph::Model> model_;
  InterpreterOptions options_;
  std::vector<SubgraphPlan> plans_;
  AlignedConstants aligned_;
  uint64_t activationBytes_ = 0;
  mutable base::Mutex mutex_;
  mutable std::vector<std::vector<std::unique_ptr<SubgraphState>>> idleStates_;  // by subgraph
};

}  // namespace hearth::ops
