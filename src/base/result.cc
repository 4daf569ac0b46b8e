// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <cerrno>
#include <system_error>

#include "base/format.h"

namespace hearth::base {

const char* errorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOutOfMemory:
      return "OUT_OF_MEMORY";
    case ErrorCode::kIncomplete:
      return "INCOMPLETE";
    case ErrorCode::kUnexpectedNull:
      return "UNEXPECTED_NULL";
    case ErrorCode::kBadData:
      return "BAD_DATA";
    case ErrorCode::kOpFailed:
      return "OP_FAILED";
    case ErrorCode::kBadState:
      return "BAD_STATE";
    case ErrorCode::kUnmappable:
      return "UNMAPPABLE";
    case ErrorCode::kOutputInsufficientSize:
      return "OUTPUT_INSUFFICIENT_SIZE";
    case ErrorCode::kUnavailableDevice:
      return "UNAVAILABLE_DEVICE";
    case ErrorCode::kMissedDeadlineTransient:
      return "MISSED_DEADLINE_TRANSIENT";
    case ErrorCode::kMissedDeadlinePersistent:
      return "MISSED_DEADLINE_PERSISTENT";
    case ErrorCode::kResourceExhaustedTransient:
      return "RESOURCE_EXHAUSTED_TRANSIENT";
    case ErrorCode::kResourceExhaustedPersistent:
      return "RESOURCE_EXHAUSTED_PERSISTENT";
    case ErrorCode::kDeadObject:
      return "DEAD_OBJECT";
    case ErrorCode::kNotFound:
      return "NOT_FOUND";
    case ErrorCode::kIo:
      return "IO";
    case ErrorCode::kUnsupported:
      return "UNSUPPORTED";
  }
  return "UNKNOWN";
}

std::string Error::toString() const {
  std::string text = message_;
  for (const std::string& step : context_) text += " (" + step + ")";
  return text;
}

Error errnoError(int errnum, std::string what) {
  ErrorCode code = ErrorCode::kIo;
  if (errnum == ENOENT || errnum == ENOTDIR) code = ErrorCode::kNotFound;
  if (errnum == ENOMEM) code = ErrorCode::kOutOfMemory;
  return Error(code,
               base::formatText("{} fails: {}.", what, std::generic_category().message(errnum)));
}

}  // namespace hearth::base
