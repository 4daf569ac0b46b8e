// SPDX-License-Identifier: Apache-2.0
#include "cache/object/store_failure.h"

#include "base/result.h"

namespace hearth::cache {
namespace {

StoreReason reasonOf(int errnum) {
  switch (errnum) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:  // RLIMIT_FSIZE
      return StoreReason::kNoSpace;
    case ENOMEM:
      return StoreReason::kNoMemory;
    case EROFS:
    case EACCES:
    case EPERM:
      return StoreReason::kReadOnly;
    case ENOENT:
    case ESTALE:
      return StoreReason::kGone;
    case ELOOP:
      return StoreReason::kLink;
    case ENOTDIR:
      return StoreReason::kNotAFolder;
    default:
      return StoreReason::kIoError;
  }
}

}  // namespace

const char* storeReasonName(StoreReason reason) {
  switch (reason) {
    case StoreReason::kNone:
      return "none";
    case StoreReason::kAbsent:
      return "absent";
    case StoreReason::kOtherPlan:
      return "other-plan";
    case StoreReason::kOff:
      return "off";
    case StoreReason::kNoHome:
      return "no-home";
    case StoreReason::kSetUid:
      return "secure-process";
    case StoreReason::kReadOnly:
      return "read-only";
    case StoreReason::kNotOwned:
      return "not-owned";
    case StoreReason::kNotPrivate:
      return "not-private";
    case StoreReason::kLink:
      return "link";
    case StoreReason::kNotAFolder:
      return "not-a-folder";
    case StoreReason::kGone:
      return "gone";
    case StoreReason::kNoSpace:
      return "no-space";
    case StoreReason::kNoMemory:
      return "no-memory";
    case StoreReason::kOverLimit:
      return "over-limit";
    case StoreReason::kIoError:
      return "io-error";
    case StoreReason::kCorrupt:
      return "corrupt";
    case StoreReason::kForeign:
      return "foreign";
    case StoreReason::kChanged:
      return "changed";
    case StoreReason::kBusy:
      return "busy";
    case StoreReason::kBadRequest:
      return "bad-request";
  }
  return "unknown";
}

std::unexpected<StoreFailure> storeErrno(int errnum, const std::string& what) {
  return std::unexpected(StoreFailure{reasonOf(errnum), base::errnoError(errnum, what).message()});
}

}  // namespace hearth::cache
