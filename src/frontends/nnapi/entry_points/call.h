// SPDX-License-Identifier: Apache-2.0
// The work that all entry points of the C API share: null checks, a trace span, a log line for a
// failure, and the result code.
#pragma once

#include <type_traits>
#include <utility>

#include "base/caught.h"
#include "base/result.h"
#include "base/trace.h"

namespace hearth::nnapi {

// NNAPI's code for an error; codes that NNAPI does not have become BAD_DATA or OP_FAILED.
int toResultCode(const Error& error);

// Logs why `function` fails and returns its result code.
int reportFailure(const char* function, const Error& error) noexcept;

// kUnexpectedNull, with the name of the parameter, for a null pointer.
inline Status notNull(const void* pointer, const char* parameter) {
  if (pointer != nullptr) [[likely]]
    return {};
  return fail(ErrorCode::kUnexpectedNull, "The parameter {} is null.", parameter);
}

// Runs the body of an entry point, a callable that returns Status; an exception becomes an error.
// Returns the result code.
template <typename Body>
int call(const char* function, Body&& body) noexcept {
  const Status status = base::caught([&] {
    const base::TraceSpan span("nnapi", function);
    return Status(body());
  });
  if (!status) [[unlikely]]
    return reportFailure(function, status.error());
  return 0;
}

// The same for an entry point that makes an object: `make` returns the object or an error, after
// which *object is null. `parameter` is the name of `object`.
template <typename Object, typename Make>
int callToMake(const char* function, const char* parameter, Object** object, Make&& make) noexcept {
  return call(function, [&]() -> Status {
    HEARTH_TRY(notNull(object, parameter));
    *object = nullptr;
    const Result<Object*> made = make();
    if (!made) return std::unexpected(made.error());
    *object = *made;
    return {};
  });
}

}  // namespace hearth::nnapi

// HEARTH_NOT_NULL(pointer) returns from the body of an entry point if the parameter is null.
#define HEARTH_NOT_NULL(parameter) HEARTH_TRY(::hearth::nnapi::notNull(parameter, #parameter))
