// SPDX-License-Identifier: Apache-2.0
// The lock of Python's interpreter (GIL), for threads that the interpreter does not wait for.
//
// A daemon thread may be in the library when the interpreter ends. Up to Python 3.13, the
// interpreter ends such a thread once it takes the lock again: it unwinds the stack by force, and
// C++ ends the process if that meets a noexcept function, as destructors and nanobind's functions
// are. So the thread stops here instead until the process is gone, as Python 3.14 itself does.
#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <utility>

namespace hearth::python {

[[noreturn]] inline void sleepUntilProcessEnds() {
  for (;;) pause();
}

// Calls a function that may give up the lock and take it again: whatever runs Python code, or code
// of an extension that lets other threads run. The function should hold references as plain
// pointers: what its frames own is released without the lock if the interpreter has ended.
template <typename Function>
auto callWithLock(Function&& function) -> decltype(std::forward<Function>(function)()) {
  try {
    return std::forward<Function>(function)();
  } catch (const abi::__forced_unwind&) {
    sleepUntilProcessEnds();
  }
}

// Lets other threads run Python code while it exists. The thread has the lock before and after.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() {
    callWithLock([this] { PyEval_RestoreThread(state_); });
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* const state_;
};

}  // namespace hearth::python
