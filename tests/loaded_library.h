// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "hearth/hearth.h"

namespace hearth {

// The functions of a libhearth.so that a program opens by itself, through a handle of its own.
class LoadedLibrary {
 public:
  // Throws std::runtime_error if the library cannot be opened, std::logic_error if it lacks a
  // function.
  explicit LoadedLibrary(const char* path) : handle_(::dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw std::runtime_error(::dlerror());
    find(load, "hearth_model_load_file");
    find(freeModel, "hearth_model_free");
    find(compile, "hearth_compile");
    find(freeCompilation, "hearth_compilation_free");
    find(startReport, "hearth_compilation_start_report");
    find(input, "hearth_compilation_input");
    find(output, "hearth_compilation_output");
    find(create, "hearth_execution_create");
    find(freeExecution, "hearth_execution_free");
    find(setInput, "hearth_execution_set_input");
    find(setOutput, "hearth_execution_set_output");
    find(run, "hearth_execution_run");
    find(start, "hearth_execution_start");
    find(wait, "hearth_event_wait");
    find(freeEvent, "hearth_event_free");
    find(message, "hearth_error_message");
    find(freeError, "hearth_error_free");
  }
  // Closes the handle, which the destructor does not. No function may be called afterwards, unless
  // something else keeps the library loaded.
  void close() { ::dlclose(handle_); }

  decltype(&hearth_model_load_file) load;
  decltype(&hearth_model_free) freeModel;
  decltype(&hearth_compile) compile;
  decltype(&hearth_compilation_free) freeCompilation;
  decltype(&hearth_compilation_start_report) startReport;
  decltype(&hearth_compilation_input) input;
  decltype(&hearth_compilation_output) output;
  decltype(&hearth_execution_create) create;
  decltype(&hearth_execution_free) freeExecution;
  decltype(&hearth_execution_set_input) setInput;
  decltype(&hearth_execution_set_output) setOutput;
  decltype(&hearth_execution_run) run;
  decltype(&hearth_execution_start) start;
  decltype(&hearth_event_wait) wait;
  decltype(&hearth_event_free) freeEvent;
  decltype(&hearth_error_message) message;
  decltype(&hearth_error_free) freeError;

 private:
  template <typename Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(handle_, name));
    if (function == nullptr) throw std::logic_error(std::string("The library lacks ") + name + ".");
  }

  void* handle_;
};

}  // namespace hearth
