// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "base/caught.h"
#include "base/result.h"
#include "frontends/tflite_c/declarations.h"

namespace hearth::tflite_c {

// Where a program wants its messages: a function of its own, or Hearth's log. Value type; as
// thread-safe as the program's function.
struct Reporter {
  TfLiteReporter function = nullptr;  // null: the log
  void* user = nullptr;

  void report(const std::string& message) const;
  // Reports the error, if there is memory for that, and returns the code for it.
  TfLiteStatus failure(const Error& error) const noexcept;
};

// Runs the body of a function, a callable that returns Status; reports how it fails, exceptions
// included, and returns the code.
template <typename Body>
TfLiteStatus guarded(const Reporter& reporter, Body&& body) noexcept {
  const Status status = base::caught(std::forward<Body>(body));
  if (!status) [[unlikely]]
    return reporter.failure(status.error());
  return kTfLiteOk;
}

// The same for a body that returns a Result of a pointer; null is returned for a failure.
template <typename Body>
auto guardedPointer(const Reporter& reporter, Body&& body) noexcept {
  auto made = base::caught(std::forward<Body>(body));
  using Pointer = typename decltype(made)::value_type;
  if (made) return *made;
  reporter.failure(made.error());
  return Pointer{nullptr};
}

}  // namespace hearth::tflite_c
