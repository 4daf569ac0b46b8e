// SPDX-License-Identifier: Apache-2.0
// Runs with Python's arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "hearth/hearth.hpp"
#include "python/array.h"
#include "python/strings.h"

namespace hearth::python {

// A compilation with its tensors; shared by its executions. Thread-safe.
struct Compiled {
  explicit Compiled(Compilation compilation);
  const Compilation compilation;
  const std::vector<TensorInfo> inputs;
  const std::vector<TensorInfo> outputs;
  // The names of the tensors as keys of dictionaries.
  const std::vector<nanobind::object> inputNames;
  const std::vector<nanobind::object> outputNames;
};

// What an execution is bound to, so that a run with the same memory binds nothing. Used by one
// thread at a time.
struct Binding {
  explicit Binding(const Compiled& compiled)
      : inputs(compiled.inputs.size()), outputs(compiled.outputs.size()) {}

  // Memory that the execution is known to be bound to; null: not known.
  struct Bound {
    const void* data = nullptr;
    uint64_t bytes = 0;
    std::vector<uint32_t> dimensions;  // of an input that has unknown ones
  };
  std::vector<Bound> inputs;
  std::vector<Bound> outputs;

  // What is known of an output that the caller gives no array for.
  struct Kept {
    uint64_t bytes = 0;  // of memory that suffices, as far as is known
    // For a small output: memory that runs write to. The result is a copy of it, which takes less
    // time than binding a new array.
    std::optional<AlignedMemory> memory;
    std::vector<uint32_t> dimensions;  // of the array
    nanobind::object array;            // in the memory
    nanobind::object copy;             // its method
  };
  // The outputs for one tuple of shapes of the inputs.
  struct Shaped {
    std::vector<uint32_t> inputs;  // the dimensions of those that have unknown ones
    std::vector<Kept> outputs;
  };
  // The last few ones, which stay where they are; the last used at the end.
  std::list<Shaped> shaped;
};

// Arrays that a run reads and writes.
class Arguments {
 public:
  // `inputs`: an array, a sequence in the order of the inputs, or a mapping from names. `outputs`:
  // None, a mapping from names to writable arrays, or a list of them in the order of the outputs,
  // with None for others; the rest is allocated.
  Arguments(std::shared_ptr<const Compiled> compiled, nanobind::handle inputs,
            nanobind::handle outputs);

  void bind(Execution& execution, Binding& binding);
  // After a run that failed since a buffer was too small: allocates what it asks for.
  void grow(const Execution& execution, Binding& binding);
  // All outputs: a list if outputs were given so, else a dictionary by name. Once, after a run that
  // succeeded.
  nanobind::object take(const Execution& execution, Binding& binding);

 private:
  struct Output {
    std::optional<ArrayMemory> given;
    nanobind::object object;  // `given` as the caller has it
    std::optional<AlignedMemory> made;
  };
  // The outputs of the binding for these inputs, which become the last used ones.
  std::vector<Binding::Kept>& keptIn(Binding& binding) const;
  std::shared_ptr<const Compiled> compiled_;
  std::vector<ArrayMemory> inputs_;
  std::vector<std::optional<StringInput>> strings_;  // by input; `inputs_` has nothing for these
  std::vector<Output> outputs_;
  bool areOutputsListed_ = false;
};

// One execution. Its runs are one after the other: a second thread is refused.
class Runner : public std::enable_shared_from_this<Runner> {
 public:
  // The state that a run begins with.
  enum class From { kPresentState, kInitialState };

  explicit Runner(std::shared_ptr<const Compiled> compiled);

  nanobind::object run(nanobind::handle inputs, nanobind::handle outputs,
                       std::optional<double> timeout, From from);
  // Keeps arrays for runBound(), which has less to do than run(). All outputs are given.
  void bind(nanobind::handle inputs, nanobind::handle outputs);
  // Runs with the arrays of the last bind(), from the present state.
  void runBound();
  void resetState();
  // Frees the execution; later calls raise BadState.
  void close();
  Statistics statistics();

 private:
  friend class Run;
  class Turn;
  // The same with the arguments bound, until no output is too small. Without the GIL.
  void runWith(Arguments& arguments, std::optional<double> timeout, From from);

  const std::shared_ptr<const Compiled> compiled_;
  std::optional<Execution> execution_;
  Binding binding_;
  std::optional<Arguments> bound_;
  std::atomic<bool> isBusy_ = false;
};

// A run in flight, with the arrays that it uses. The destructor waits for it.
class Run {
 public:
  Run(std::shared_ptr<Runner> runner, nanobind::handle inputs, nanobind::handle outputs,
      std::optional<double> timeout);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run();

  // The outputs; None when the run still goes on after `timeout` seconds. Raises the run's failure.
  // Any number of threads may wait.
  nanobind::object wait(std::optional<double> timeout);
  bool isDone() const { return event_->isDone(); }

 private:
  // How the run has ended: not yet, well, or because an output is too small.
  enum class Ending { kNone, kSuccess, kTooSmall };
  // Without the GIL. Throws all other failures.
  Ending waitForEvent(std::optional<std::chrono::nanoseconds> limit) const;
  void endTurn();

  std::shared_ptr<Runner> runner_;
  Arguments arguments_;
  std::optional<double> timeout_;
  std::optional<Event> event_;
  std::timed_mutex mutex_;  // held by who takes the outputs
  bool hasTurn_ = true;
  nanobind::object result_;
};

// Executions of a compilation for callers without one, any number at a time.
class RunnerPool {
 public:
  explicit RunnerPool(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  // A run that begins with the initial state.
  nanobind::object run(nanobind::handle inputs, nanobind::handle outputs,
                       std::optional<double> timeout);

 private:
  const std::shared_ptr<const Compiled> compiled_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Runner>> idle_;
};

}  // namespace hearth::python
