// SPDX-License-Identifier: Apache-2.0
// What one run of an Interpreter owns. Internal to the interpreter.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "ops/interpreter.h"

namespace hearth::ops {

struct FreeDeleter {
  void operator()(uint8_t* data) const { std::free(data); }
};
using Buffer = std::unique_ptr<uint8_t, FreeDeleter>;

// The value of one operand during a run.
struct Value {
  uint8_t* data = nullptr;  // null while there is none
  Dimensions dimensions;
  bool isPresent = false;
  Buffer owned;  // set when `data` is ours
  uint64_t ownedBytes = 0;
  // The caller's memory for an output of the main subgraph; null for all else.
  const RunArgument* destination = nullptr;
  bool isSufficient = true;

  // Moves the value and the memory that it owns out of this object.
  Value take() {
    const uint64_t bytes = std::exchange(ownedBytes, 0);
    Value taken = std::move(*this);
    taken.ownedBytes = bytes;
    return taken;
  }

  void forget() {
    data = nullptr;
    isPresent = false;
    owned.reset();
    ownedBytes = 0;
    destination = nullptr;
    isSufficient = true;
  }
};

struct Interpreter::SubgraphState {
  std::vector<Value> values;               // by operand
  std::vector<OperationContext> contexts;  // by operation
};

// One run, on one thread.
class InterpreterRun {
 public:
  InterpreterRun(const Interpreter& interpreter, const RunOptions& options)
      : interpreter_(interpreter), model_(*interpreter.model_), options_(options) {}

  RunResult run(const std::vector<RunArgument>& inputs, const std::vector<RunArgument>& outputs);

 private:
  using State = Interpreter::SubgraphState;
  // Returns a state, and all that it owns, to the interpreter when the scope ends.
  class StateLease;

  // Copies an output that does not fit its argument to RunOptions::room.
  Status moveToRoom(size_t output, const Value& value);
  Status bindMainInput(const graph::Operand& operand, const RunArgument& argument, Value* value);
  // Binds the inputs of a nested subgraph: views of values that outlive its run.
  Status bindInputs(size_t subgraph, State* state, const std::vector<const Value*>& inputs);
  Status checkOmissions(size_t subgraph, const State& state) const;
  Status runSubgraph(size_t subgraph, State* state);
  Status runStep(const graph::Subgraph& subgraph, size_t index, const Interpreter::Step& step,
                 State* state);
  Status runIf(const graph::Subgraph& subgraph, const graph::Operation& operation, State* state);
  Status runWhile(const graph::Subgraph& subgraph, const graph::Operation& operation, State* state);
  // Moves an output of a nested run to the operand outside.
  Status handOut(const graph::Operand& operand, Value from, Value* to);
  Status finishOutput(const graph::Operand& operand, Value* value);
  Status allocate(const graph::Operand& operand, uint64_t bytes, Value* value);
  // Takes room for as many bytes in the budget of this thread, until the run ends.
  Status takeRoom(uint64_t bytes);
  void release(Value* value);

  const Interpreter& interpreter_;
  const graph::Model& model_;
  const RunOptions& options_;
  uint64_t liveBytes_ = 0;
  uint64_t roomBytes_ = 0;  // taken by takeRoom()
  std::vector<std::shared_ptr<void>> rooms_;
};

}  // namespace hearth::ops
