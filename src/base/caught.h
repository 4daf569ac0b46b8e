// SPDX-License-Identifier: Apache-2.0
// Where exceptions end: at the functions of the C interfaces, in callbacks from C, and where a
// piece of work runs on a thread of ours. Below, failures are Results; what is thrown is the
// standard library's, mostly for want of memory.
#pragma once

#include <expected>
#include <type_traits>
#include <utility>

#include "base/result.h"

namespace hearth::base {

// The exception that is being handled, as an error: kOutOfMemory for want of memory, else kOpFailed
// with its text. For a catch block; takes no memory where there is none.
Error currentError() noexcept;

// Logs that `what` fails, if there is memory for it.
void logFailure(const char* what, const Error& error) noexcept;

// The body's Status or Result (success where it returns nothing), or what it throws.
template <typename Body>
auto caught(Body&& body) noexcept {
  using Returned = std::invoke_result_t<Body&>;
  using Caught = std::conditional_t<std::is_void_v<Returned>, Status, Returned>;
  try {
    if constexpr (std::is_void_v<Returned>) {
      body();
      return Caught();
    } else {
      return Caught(body());
    }
  } catch (...) {
    return Caught(std::unexpected(currentError()));
  }
}

// For work whose result nobody waits for: what it throws is logged, as the failure of `what`.
template <typename Body>
void logged(const char* what, Body&& body) noexcept {
  if (const Status status = caught(body); !status) logFailure(what, status.error());
}

}  // namespace hearth::base
