// SPDX-License-Identifier: Apache-2.0
// Interpreters of TensorFlow Lite's C interface, for programs in Python that bring delegates.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "frontends/tflite_c/functions.h"

namespace hearth::python {

// Whether an installed driver makes a device of an external delegate's library, a path or a name.
bool hasDelegateDevice(const std::string& library);

// A model whose graph delegates of the program may take. Raises RuntimeError with what the
// interface reports. One thread at a time may use it and its subgraphs; each call gives up Python's
// lock, since a delegate may call Python code in any thread.
class ProgramInterpreter {
 public:
  // `content`: the model's bytes, which it keeps. `threads`: -1 stands for the default.
  ProgramInterpreter(nanobind::bytes content, int32_t threads);
  ProgramInterpreter(const std::string& path, int32_t threads);
  // Delegates are released after everything that uses them.
  ~ProgramInterpreter();
  ProgramInterpreter(const ProgramInterpreter&) = delete;
  ProgramInterpreter& operator=(const ProgramInterpreter&) = delete;

  // Offers the graph to the structure at this address, which lives as long as `owner`.
  void applyDelegate(uintptr_t address, nanobind::object owner);
  void resetVariables();

 private:
  friend class ProgramSubgraph;

  void create(int32_t threads);
  // Runs a function that returns a status without Python's lock.
  template <typename Function>
  void call(Function function);
  // Raises RuntimeError with what was reported.
  [[noreturn]] void fail();

  std::vector<nanobind::object> owners_;  // of delegates
  nanobind::object content_;
  std::string message_;
  TfLiteModel* model_ = nullptr;
  TfLiteInterpreter* interpreter_ = nullptr;
};

// A subgraph of an interpreter, with the memory of its inputs and outputs. Tensors are named by
// their index and, in the subgraph of a signature, by the signature's name.
class ProgramSubgraph {
 public:
  // `signature`: its key, or empty for the first subgraph.
  ProgramSubgraph(std::shared_ptr<ProgramInterpreter> interpreter, const std::string& signature);
  ~ProgramSubgraph();
  ProgramSubgraph(const ProgramSubgraph&) = delete;
  ProgramSubgraph& operator=(const ProgramSubgraph&) = delete;

  void resizeInput(int32_t index, const std::string& name, const std::vector<int32_t>& shape);
  void allocate();
  void invoke();

  // An array in the memory of an input or output, which keeps `self`, this object, alive; None for
  // strings and for a tensor that has no memory yet.
  nanobind::object array(nanobind::handle self, int32_t index, const std::string& name) const;
  std::vector<int32_t> shape(int32_t index, const std::string& name) const;
  nanobind::list strings(int32_t index, const std::string& name) const;
  void setStrings(int32_t index, const std::string& name,
                  const std::vector<nanobind::bytes>& texts);

 private:
  TfLiteTensor* tensor(int32_t index, const std::string& name) const;

  const std::shared_ptr<ProgramInterpreter> interpreter_;
  TfLiteSignatureRunner* runner_ = nullptr;  // null for the first subgraph
};

}  // namespace hearth::python
