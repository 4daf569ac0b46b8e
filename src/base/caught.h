// SPDX-License-Identifier: Apache-2.0
// Exceptions end here: in the functions of the C interfaces, in callbacks from C, and on threads of
// ours. All other code reports failures as Results; what is thrown comes from the standard library,
// mostly because memory runs out.
#pragma once

#include <expected>
#include <type_traits>
#include <utility>

#include "base/result.h"

namespace hearth::base {

// The exception that is being handled, as an error: kOutOfMemory when memory ran out, else
// kOpFailed with its text. For use in a catch block. Allocates nothing when memory has run out.
Error currentError() noexcept;

// Logs that `what` failed, if there is memory for that.
void logFailure(const char* what, const Error& error) noexcept;

// Returns the body's Status or Result (success if it returns nothing), or the error that it throws.
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

// For work whose result nobody waits for: logs what the body throws, as a failure of `what`.
template <typename Body>
void logged(const char* what, Body&& body) noexcept {
  if (const Status status = caught(body); !status) logFailure(what, status.error());
}

}  // namespace hearth::base
