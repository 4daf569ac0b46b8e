// SPDX-License-Identifier: Apache-2.0
#include "frontends/nnapi/call.h"

#include "android/NeuralNetworksTypes.h"
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

int reportFailure(const char* function, const Error& error) {
  base::logWarn("{} fails ({}). {}", function, base::errorCodeName(error.code()), error.toString());
  return toResultCode(error);
}

int reportOutOfMemory(const char* function) {
  base::logWarn("{} fails (OUT_OF_MEMORY). There is no memory left.", function);
  return ANEURALNETWORKS_OUT_OF_MEMORY;
}

}  // namespace hearth::nnapi
