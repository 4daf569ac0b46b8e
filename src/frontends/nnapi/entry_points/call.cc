// SPDX-License-Identifier: Apache-2.0
#include "frontends/nnapi/entry_points/call.h"

#include "android/NeuralNetworksTypes.h"
#include "base/caught.h"
#include "base/log.h"

namespace hearth::nnapi {

int toResultCode(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kNotFound:
    case ErrorCode::kUnsupported:
      return ANEURALNETWORKS_BAD_DATA;
    case ErrorCode::kIo:
      return ANEURALNETWORKS_OP_FAILED;
    default:
      return static_cast<int>(error.code());
  }
}

int reportFailure(const char* function, const Error& error) noexcept {
  static_cast<void>(base::caught([&] {
    base::logWarn("{} fails ({}). {}", function, base::errorCodeName(error.code()),
                  error.toString());
  }));
  return toResultCode(error);
}

}  // namespace hearth::nnapi
