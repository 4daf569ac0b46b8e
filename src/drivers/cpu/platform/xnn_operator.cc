// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/platform/xnn_operator.h"

#include "base/format.h"

namespace hearth::cpu {

Error xnnError(xnn_status status, const char* call) {
  switch (status) {
    case xnn_status_out_of_memory:
      return Error(ErrorCode::kOutOfMemory,
                   base::formatText("XNNPACK has no memory for {}.", call));
    case xnn_status_invalid_parameter:
    case xnn_status_unsupported_parameter:
    case xnn_status_unsupported_hardware:
      return Error(ErrorCode::kUnsupported,
                   base::formatText("XNNPACK refuses the parameters of {} (status {}).", call,
                                    static_cast<int>(status)));
    default:
      return Error(ErrorCode::kOpFailed, base::formatText("XNNPACK fails in {} with status {}.",
                                                          call, static_cast<int>(status)));
  }
}

}  // namespace hearth::cpu
