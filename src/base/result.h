// SPDX-License-Identifier: Apache-2.0
// Result<T> is how all code below the front ends reports failure. No exceptions cross layers.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"

namespace hearth::base {

// The kind of failure. The first block is NNAPI's ResultCode, value for value, so that the C front
// end can cast. The second block is ours and becomes kOpFailed or kBadData there.
enum class ErrorCode : int32_t {
  kOutOfMemory = 1,
  kIncomplete = 2,
  kUnexpectedNull = 3,
  kBadData = 4,
  kOpFailed = 5,
  kBadState = 6,
  kUnmappable = 7,
  kOutputInsufficientSize = 8,
  kUnavailableDevice = 9,
  kMissedDeadlineTransient = 10,
  kMissedDeadlinePersistent = 11,
  kResourceExhaustedTransient = 12,
  kResourceExhaustedPersistent = 13,
  kDeadObject = 14,

  kNotFound = 100,     // a file, device, signature or key does not exist
  kIo = 101,           // the operating system refused a read, write, map or lock
  kUnsupported = 102,  // valid, but nothing here implements it
};

// The name of a code for messages and logs, for example "BAD_DATA".
const char* errorCodeName(ErrorCode code);

// One failure: a sentence that says what is wrong (present tense, with value, limit and name), and
// the steps that led there, innermost first. Value type; not thread-safe.
class Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::vector<std::string>& context() const { return context_; }

  // Adds an outer step, for example "while reading tensor 3 of subgraph 0".
  Error&& addContext(std::string step) && {
    context_.push_back(std::move(step));
    return std::move(*this);
  }

  // Message and context in one line, for people.
  std::string toString() const;

 private:
  ErrorCode code_;
  std::string message_;
  std::vector<std::string> context_;
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

// Makes the error value to return: return fail(ErrorCode::kBadData, "Rank {} exceeds {}.", r, max);
template <typename... Args>
std::unexpected<Error> fail(ErrorCode code, std::format_string<Args...> format, Args&&... args) {
  return std::unexpected<Error>(
      Error(code, ::hearth::base::formatText(format, std::forward<Args>(args)...)));
}

// The error of a system call that failed with `errnum`; `what` names the call and its object.
Error errnoError(int errnum, std::string what);

}  // namespace hearth::base

namespace hearth {
using base::Error;
using base::ErrorCode;
using base::fail;
using base::Result;
using base::Status;
}  // namespace hearth

#define HEARTH_CONCAT_INNER(a, b) a##b
#define HEARTH_CONCAT(a, b) HEARTH_CONCAT_INNER(a, b)

// HEARTH_ASSIGN(auto x, expression): declares x from a Result or returns its error.
#define HEARTH_ASSIGN(declaration, expression) \
  HEARTH_ASSIGN_IMPL(HEARTH_CONCAT(hearthResult, __LINE__), declaration, expression)
#define HEARTH_ASSIGN_IMPL(name, declaration, expression) \
  auto name = (expression);                               \
  if (!name) [[unlikely]]                                 \
    return std::unexpected(std::move(name.error()));      \
  declaration = std::move(*name)

// HEARTH_TRY(expression): returns the error of a Status or Result, else goes on.
#define HEARTH_TRY(expression)                                        \
  do {                                                                \
    if (auto hearthStatus = (expression); !hearthStatus) [[unlikely]] \
      return std::unexpected(std::move(hearthStatus.error()));        \
  } while (false)

// HEARTH_TRY_CONTEXT(expression, "format", args...): as HEARTH_TRY, with an outer step added.
#define HEARTH_TRY_CONTEXT(expression, ...)                                                     \
  do {                                                                                          \
    if (auto hearthStatus = (expression); !hearthStatus) [[unlikely]]                           \
      return std::unexpected(                                                                   \
          std::move(hearthStatus.error()).addContext(::hearth::base::formatText(__VA_ARGS__))); \
  } while (false)
