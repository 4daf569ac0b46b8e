// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hearth_xnnpack.h>

#include <memory>

#include "base/result.h"

namespace hearth::cpu {

// Owns one XNNPACK operator.
struct XnnOperatorDelete {
  void operator()(xnn_operator_t op) const { xnn_delete_operator(op); }
};
using XnnOperator = std::unique_ptr<struct xnn_operator, XnnOperatorDelete>;

// Error for a status of XNNPACK: kUnsupported for parameters that it refuses, else kOpFailed or
// kOutOfMemory; `call` names the function.
Error xnnError(xnn_status status, const char* call);

}  // namespace hearth::cpu
