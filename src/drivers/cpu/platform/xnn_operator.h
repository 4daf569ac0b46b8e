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

// The error for a status of XNNPACK: kUnsupported for parameters that XNNPACK refuses, else
// kOutOfMemory or kOpFailed. `call` names the function for the message.
Error xnnError(xnn_status status, const char* call);

}  // namespace hearth::cpu
