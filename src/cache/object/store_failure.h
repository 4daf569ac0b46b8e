// SPDX-License-Identifier: Apache-2.0
// Why the weight store could not do something. No such failure fails a model: the caller goes on
// from private memory and puts the reason into the start report.
#pragma once

#include <cerrno>
#include <expected>
#include <string>
#include <utility>

#include "base/caught.h"
#include "base/format.h"

namespace hearth::cache {

enum class StoreReason : int {
  kNone,
  kAbsent,      // no such object
  kOtherPlan,   // the bundle holds another plan
  kOff,         // the store is switched off
  kNoHome,      // no folder is named and there is no home folder
  kSetUid,      // a privileged process, to which only its environment names a store
  kReadOnly,    // the store or its file system may not be written
  kNotOwned,    // the store's folder belongs to neither the user nor root
  kNotPrivate,  // the store's folder may be written by its group or by everybody
  kLink,        // a symbolic link stands where a folder of the store should be
  kNotAFolder,  // something else than a folder stands there
  kGone,        // the store's folder was deleted
  kNoSpace,     // the disk, the user's quota, or the process's limit on files is full
  kNoMemory,    // memory or address space is exhausted
  kOverLimit,   // the store's own size limit is reached and nothing can be removed
  kIoError,     // the operating system failed otherwise
  kCorrupt,     // the object's bytes are not what was written
  kForeign,     // an object that is no regular file of the user or root, or that others may write
  kChanged,     // the content to keep, or the file that it is named after, changed meanwhile
  kBusy,        // another process holds its lock
  kBadRequest,  // the caller asked for an object that cannot exist (empty, too large)
};

// A word for reports, for example "no-space".
const char* storeReasonName(StoreReason reason);

struct StoreFailure {
  StoreReason reason = StoreReason::kNone;
  std::string message;  // one sentence for people
};

template <typename T>
using StoreResult = std::expected<T, StoreFailure>;
using StoreStatus = StoreResult<void>;

template <typename... Args>
std::unexpected<StoreFailure> storeFail(StoreReason reason, std::format_string<Args...> format,
                                        Args&&... args) {
  return std::unexpected(
      StoreFailure{reason, base::formatText(format, std::forward<Args>(args)...)});
}

// Returns what the body returns, or kNoMemory with the message of what it throws.
template <typename Body>
auto storeCaught(Body&& body) noexcept -> std::invoke_result_t<Body&> {
  try {
    return body();
  } catch (...) {
    return std::unexpected(
        StoreFailure{StoreReason::kNoMemory, std::move(base::currentError()).message()});
  }
}

// The failure of a system call; `what` names the call and its object.
std::unexpected<StoreFailure> storeErrno(int errnum, const std::string& what);

}  // namespace hearth::cache
