// SPDX-License-Identifier: Apache-2.0
#include "python/execution.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "python/interpreter_lock.h"

namespace hearth::python {

namespace nb = nanobind;

namespace {

std::optional<std::chrono::nanoseconds> duration(std::optional<double> seconds) {
  if (!seconds) return std::nullopt;
  if (!(*seconds >= 0)) refuse("A time-out is a number of seconds that is not negative.");
  constexpr double kMost = 1e9;  // 30 years
  return std::chrono::nanoseconds(static_cast<int64_t>(std::min(*seconds, kMost) * 1e9));
}

// The most bytes of an output that is small: they are copied sooner than another array is bound.
constexpr uint64_t kMostKept = 16 << 10;

// For how many tuples of shapes of the inputs outputs are kept: a program alternates between a few.
constexpr size_t kMostShapes = 8;

std::string namesOf(const std::vector<TensorInfo>& tensors) {
  std::string names;
  for (const TensorInfo& tensor : tensors)
    names += (names.empty() ? "'" : ", '") + tensor.name + "'";
  return names;
}

// A mapping of any kind as a dictionary.
nb::dict dictionaryOf(nb::handle mapping) {
  if (PyDict_CheckExact(mapping.ptr())) return nb::borrow<nb::dict>(mapping);
  nb::dict dictionary;
  if (callWithLock([&] { return PyDict_Update(dictionary.ptr(), mapping.ptr()); }) != 0)
    throw nb::python_error();
  return dictionary;
}

// The values of a dictionary by tensor; a null object for those that it lacks.
std::vector<nb::object> byTensor(const nb::dict& given, const std::vector<TensorInfo>& tensors,
                                 const std::vector<nb::object>& names, const char* kind) {
  std::vector<nb::object> values(tensors.size());
  size_t known = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    PyObject* const value = PyDict_GetItemWithError(given.ptr(), names[i].ptr());
    if (value == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
    values[i] = nb::borrow(value);
    if (value != nullptr) ++known;
  }
  if (known == given.size()) return values;
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(nb::str(key));
    bool isKnown = false;
    for (const TensorInfo& tensor : tensors) isKnown |= tensor.name == name;
    if (!isKnown)
      refuse("There is no " + std::string(kind) + " '" + name + "'. The model has " +
             namesOf(tensors) + ".");
  }
  return values;
}

// How many dimensions nested lists have, which may end in arrays.
size_t rankOf(nb::handle object) {
  constexpr size_t kMost = 64;  // a list may contain itself
  size_t rank = 0;
  nb::object inner = nb::borrow(object);
  while ((PyList_Check(inner.ptr()) || PyTuple_Check(inner.ptr())) && ++rank < kMost) {
    if (nb::len(inner) == 0) return rank;
    inner = inner[0];
  }
  if (!nb::hasattr(inner, "ndim")) return rank;
  size_t more = 0;
  return nb::try_cast(inner.attr("ndim"), more) ? rank + more : rank;
}

std::vector<nb::object> keysOf(const std::vector<TensorInfo>& tensors) {
  std::vector<nb::object> keys;
  for (const TensorInfo& tensor : tensors) {
    PyObject* const key = PyUnicode_InternFromString(tensor.name.c_str());
    if (key == nullptr) throw nb::python_error();
    keys.push_back(nb::steal(key));
  }
  return keys;
}

// The bytes that an output takes, as far as they are known before a run.
uint64_t expectedBytes(const TensorInfo& tensor) {
  return tensor.byteSize != 0 ? tensor.byteSize : bytesOf(tensor.type, tensor.defaultDimensions);
}

bool isSmall(const Binding::Kept& kept) {
  return kept.bytes <= kMostKept;
}

// Makes the memory that runs write a small output to, unless there is enough.
void keepMemory(const TensorInfo& tensor, Binding::Kept* kept) {
  if (kept->memory && kept->memory->bytes() >= kept->bytes) return;
  kept->copy.reset();
  kept->array.reset();
  kept->memory.emplace(tensor, kept->bytes);
}

// A new array with the values of the last run.
nb::object copied(Binding::Kept& kept, const std::vector<uint32_t>& dimensions) {
  if (!kept.copy.is_valid() || kept.dimensions != dimensions) {
    kept.array = kept.memory->view(dimensions);
    kept.copy = kept.array.attr("copy");
    kept.dimensions = dimensions;
  }
  PyObject* const array = callWithLock([&] { return PyObject_CallNoArgs(kept.copy.ptr()); });
  if (array == nullptr) throw nb::python_error();
  return nb::steal(array);
}

bool isMapping(nb::handle object) {
  return PyDict_Check(object.ptr()) ||
         (nb::hasattr(object, "keys") && nb::hasattr(object, "__contains__"));
}

}  // namespace

Compiled::Compiled(Compilation made)
    : compilation(std::move(made)),
      inputs(compilation.inputs()),
      outputs(compilation.outputs()),
      inputNames(keysOf(inputs)),
      outputNames(keysOf(outputs)) {}

Arguments::Arguments(std::shared_ptr<const Compiled> compiled, nb::handle inputs,
                     nb::handle outputs)
    : compiled_(std::move(compiled)), outputs_(compiled_->outputs.size()) {
  const std::vector<TensorInfo>& tensors = compiled_->inputs;
  std::vector<nb::object> values;
  if (isMapping(inputs)) {
    values = byTensor(dictionaryOf(inputs), tensors, compiled_->inputNames, "input");
  } else if ((PyList_Check(inputs.ptr()) || PyTuple_Check(inputs.ptr())) &&
             !(tensors.size() == 1 && rankOf(inputs) == tensors[0].dimensions.size())) {
    for (const nb::handle value : inputs) values.push_back(nb::borrow(value));
  } else if (!inputs.is_none()) {
    values.push_back(nb::borrow(inputs));
  }
  if (values.size() != tensors.size())
    refuse("The model has " + std::to_string(tensors.size()) +
           (tensors.size() == 1 ? " input (" : " inputs (") + namesOf(tensors) + "), and " +
           std::to_string(values.size()) + (values.size() == 1 ? " is given." : " are given."));
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!values[i].is_valid()) refuse("The input '" + tensors[i].name + "' is missing.");
    strings_.emplace_back();
    if (tensors[i].type == HEARTH_TYPE_STRING) {
      strings_.back() = StringInput::of(values[i], tensors[i]);
      inputs_.emplace_back();
    } else {
      inputs_.push_back(ArrayMemory::ofInput(values[i], tensors[i]));
    }
  }
  if (outputs.is_none()) return;
  std::vector<nb::object> given;
  if (PyList_Check(outputs.ptr())) {
    areOutputsListed_ = true;
    for (const nb::handle value : outputs) given.push_back(nb::borrow(value));
    if (given.size() != outputs_.size())
      refuse("The model has " + std::to_string(outputs_.size()) + " outputs, and the list has " +
             std::to_string(given.size()) + ".");
  } else {
    if (!isMapping(outputs)) refuse("Outputs are given by name, as a mapping.");
    given = byTensor(dictionaryOf(outputs), compiled_->outputs, compiled_->outputNames, "output");
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!given[i].is_valid() || (areOutputsListed_ && given[i].is_none())) continue;
    if (compiled_->outputs[i].type == HEARTH_TYPE_STRING)
      refuse("The output '" + compiled_->outputs[i].name +
             "' is of strings, for which no array can be given.");
    outputs_[i].given = ArrayMemory::ofOutput(given[i], compiled_->outputs[i]);
    outputs_[i].object = given[i];
  }
}

std::vector<Binding::Kept>& Arguments::keptIn(Binding& binding) const {
  std::list<Binding::Shaped>& all = binding.shaped;
  const auto isOfThese = [this](const Binding::Shaped& shaped) {
    auto known = shaped.inputs.begin();
    for (const ArrayMemory& input : inputs_) {
      const std::vector<uint32_t>& dimensions = input.dimensions();
      if (static_cast<size_t>(shaped.inputs.end() - known) < dimensions.size() ||
          !std::equal(dimensions.begin(), dimensions.end(), known))
        return false;
      known += static_cast<std::ptrdiff_t>(dimensions.size());
    }
    return known == shaped.inputs.end();
  };
  if (const auto found = std::ranges::find_if(all, isOfThese); found != all.end()) {
    all.splice(all.end(), all, found);
    return all.back().outputs;
  }
  Binding::Shaped made;
  for (const ArrayMemory& input : inputs_)
    made.inputs.insert(made.inputs.end(), input.dimensions().begin(), input.dimensions().end());
  made.outputs.resize(compiled_->outputs.size());
  for (size_t i = 0; i < made.outputs.size(); ++i)
    made.outputs[i].bytes = expectedBytes(compiled_->outputs[i]);
  if (all.size() == kMostShapes) all.pop_front();
  all.push_back(std::move(made));
  return all.back().outputs;
}

void Arguments::bind(Execution& execution, Binding& binding) {
  const auto bindTo = [](Binding::Bound* bound, const void* data, uint64_t bytes,
                         const std::vector<uint32_t>& dimensions, const auto& set) {
    if (bound->data == data && bound->bytes == bytes && bound->dimensions == dimensions) return;
    bound->data = nullptr;
    set();
    *bound = {data, bytes, dimensions};
  };
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (strings_[i]) {
      execution.setInputStrings(i, strings_[i]->texts, strings_[i]->dimensions);
      continue;
    }
    const ArrayMemory& input = inputs_[i];
    bindTo(&binding.inputs[i], input.data(), input.bytes(), input.dimensions(),
           [&] { execution.setInput(i, input.data(), input.bytes(), input.dimensions()); });
  }
  std::vector<Binding::Kept>& kept = keptIn(binding);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    Output& output = outputs_[i];
    const TensorInfo& tensor = compiled_->outputs[i];
    const auto bindOutput = [&](const auto& memory) {
      bindTo(&binding.outputs[i], memory.data(), memory.bytes(), {},
             [&] { execution.setOutput(i, memory.data(), memory.bytes()); });
    };
    if (output.given) {
      bindOutput(*output.given);
    } else if (isSmall(kept[i])) {
      keepMemory(tensor, &kept[i]);
      bindOutput(*kept[i].memory);
    } else {
      if (!output.made || output.made->bytes() < kept[i].bytes)
        output.made.emplace(tensor, kept[i].bytes);
      bindOutput(*output.made);
    }
  }
}

void Arguments::grow(const Execution& execution, Binding& binding) {
  std::vector<Binding::Kept>& kept = keptIn(binding);
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (!outputs_[i].given)
      kept[i].bytes =
          std::max(kept[i].bytes, bytesOf(compiled_->outputs[i].type, execution.outputShape(i)));
}

nb::object Arguments::take(const Execution& execution, Binding& binding) {
  std::vector<Binding::Kept>& kept = keptIn(binding);
  nb::dict result;
  nb::list list;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const TensorInfo& tensor = compiled_->outputs[i];
    Output& output = outputs_[i];
    const auto takeWith = [&](const std::vector<uint32_t>& dimensions) {
      const bool isKept = isSmall(kept[i]);
      nb::object value;
      if (tensor.type == HEARTH_TYPE_STRING)
        value = arrayOfStrings(execution, isKept ? kept[i].memory->data() : output.made->data(),
                               dimensions);
      else
        value = isKept ? copied(kept[i], dimensions) : output.made->take(dimensions);
      if (tensor.byteSize == 0) kept[i].bytes = bytesOf(tensor.type, dimensions);
      return value;
    };
    nb::object value;
    if (output.given)
      value = output.object;
    else if (tensor.byteSize != 0)
      value = takeWith(tensor.dimensions);
    else
      value = takeWith(execution.outputShape(i));
    if (areOutputsListed_)
      list.append(value);
    else if (PyDict_SetItem(result.ptr(), compiled_->outputNames[i].ptr(), value.ptr()) != 0)
      throw nb::python_error();
  }
  if (areOutputsListed_) return list;
  return result;
}

// The right to use a runner's execution.
class Runner::Turn {
 public:
  explicit Turn(Runner& runner) : runner_(runner) {
    if (runner.isBusy_.exchange(true)) {
      setError(HEARTH_BAD_STATE,
               "The execution is running. Wait for it, or make one for each thread.");
      throw nb::python_error();
    }
    if (runner.execution_) return;
    runner.isBusy_ = false;
    setError(HEARTH_BAD_STATE, "The execution is closed.");
    throw nb::python_error();
  }
  ~Turn() {
    if (!isKept_) runner_.isBusy_ = false;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  void keep() { isKept_ = true; }

 private:
  Runner& runner_;
  bool isKept_ = false;
};

Runner::Runner(std::shared_ptr<const Compiled> compiled)
    : compiled_(std::move(compiled)),
      execution_([this] {
        const Unlocked unlocked;
        return compiled_->compilation.createExecution();
      }()),
      binding_(*compiled_) {}

void Runner::runWith(Arguments& arguments, std::optional<double> timeout, From from) {
  const auto limit = duration(timeout);
  // Each failure for want of room tells the size of at least one more output.
  for (size_t tries = 0;; ++tries) {
    try {
      const Unlocked unlocked;
      if (from == From::kInitialState && tries == 0) execution_->resetState();
      if (limit) return execution_->run(*limit);
      return execution_->run();
    } catch (const Exception& exception) {
      if (exception.code() != HEARTH_OUTPUT_INSUFFICIENT_SIZE || tries > compiled_->outputs.size())
        throw;
    }
    arguments.grow(*execution_, binding_);
    arguments.bind(*execution_, binding_);
  }
}

nb::object Runner::run(nb::handle inputs, nb::handle outputs, std::optional<double> timeout,
                       From from) {
  const Turn turn(*this);
  Arguments arguments(compiled_, inputs, outputs);
  arguments.bind(*execution_, binding_);
  runWith(arguments, timeout, from);
  return arguments.take(*execution_, binding_);
}

void Runner::bind(nb::handle inputs, nb::handle outputs) {
  const Turn turn(*this);
  Arguments arguments(compiled_, inputs, outputs);
  arguments.bind(*execution_, binding_);
  bound_.emplace(std::move(arguments));
}

void Runner::runBound() {
  const Turn turn(*this);
  if (!bound_) {
    setError(HEARTH_BAD_STATE, "The execution has no arrays that are bound.");
    throw nb::python_error();
  }
  // Other runs may have bound other arrays.
  bound_->bind(*execution_, binding_);
  runWith(*bound_, std::nullopt, From::kPresentState);
}

void Runner::resetState() {
  const Turn turn(*this);
  const Unlocked unlocked;
  execution_->resetState();
}

void Runner::close() {
  if (!execution_) return;
  const Turn turn(*this);
  bound_.reset();
  std::optional<Execution> closed;
  closed.swap(execution_);
  const Unlocked unlocked;
  closed.reset();
}

Statistics Runner::statistics() {
  // Also while it runs.
  if (execution_) return execution_->statistics();
  const Turn refused(*this);
  return {};
}

Run::Run(std::shared_ptr<Runner> runner, nb::handle inputs, nb::handle outputs,
         std::optional<double> timeout)
    : runner_(std::move(runner)),
      arguments_(runner_->compiled_, inputs, outputs),
      timeout_(timeout) {
  Runner::Turn turn(*runner_);
  arguments_.bind(*runner_->execution_, runner_->binding_);
  const auto limit = duration(timeout);
  event_.emplace(limit ? runner_->execution_->start(*limit) : runner_->execution_->start());
  turn.keep();
}

Run::~Run() {
  if (!hasTurn_) return;
  {
    const Unlocked unlocked;
    try {
      event_->wait();
    } catch (const Exception&) {  // nobody asked how it ended
    }
  }
  endTurn();
}

void Run::endTurn() {
  if (std::exchange(hasTurn_, false)) runner_->isBusy_ = false;
}

Run::Ending Run::waitForEvent(std::optional<std::chrono::nanoseconds> limit) const {
  try {
    if (!limit)
      event_->wait();
    else if (!event_->waitFor(*limit))
      return Ending::kNone;
  } catch (const Exception& exception) {
    if (exception.code() != HEARTH_OUTPUT_INSUFFICIENT_SIZE) throw;
    return Ending::kTooSmall;
  }
  return Ending::kSuccess;
}

nb::object Run::wait(std::optional<double> timeout) {
  const auto limit = duration(timeout);
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_, std::defer_lock);
  try {
    Ending ending = Ending::kNone;
    {
      const Unlocked unlocked;
      ending = waitForEvent(limit);
      // Another thread may be running once more, into larger outputs.
      if (ending != Ending::kNone && !limit)
        lock.lock();
      else if (ending != Ending::kNone && !lock.try_lock_until(begin + *limit))
        ending = Ending::kNone;
    }
    if (ending == Ending::kNone) return nb::none();
    if (ending == Ending::kTooSmall && hasTurn_) {
      arguments_.grow(*runner_->execution_, runner_->binding_);
      arguments_.bind(*runner_->execution_, runner_->binding_);
      runner_->runWith(arguments_, timeout_, Runner::From::kPresentState);
    }
    if (!result_.is_valid()) result_ = arguments_.take(*runner_->execution_, runner_->binding_);
  } catch (...) {
    endTurn();
    throw;
  }
  endTurn();
  return result_;
}

nb::object RunnerPool::run(nb::handle inputs, nb::handle outputs, std::optional<double> timeout) {
  std::shared_ptr<Runner> runner;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      runner = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  const bool isNew = runner == nullptr;
  if (isNew) runner = std::make_shared<Runner>(compiled_);
  nb::object result = runner->run(
      inputs, outputs, timeout, isNew ? Runner::From::kPresentState : Runner::From::kInitialState);
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(runner));
  return result;
}

}  // namespace hearth::python
