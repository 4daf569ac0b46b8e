// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hearth_xnnpack.h>

#include <cmath>
#include <functional>
#include <memory>

#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/platform/xnn_operator.h"
#include "graph/model.h"
#include "ops/activation.h"
#include "threads/gemm_hint.h"

namespace hearth::cpu {

// The calls that turn an operator of XNNPACK into a step of an execution graph.
struct XnnCalls {
  // Sets the shapes; writes size and alignment of the scratch memory, if the operator needs any.
  std::function<xnn_status(xnn_operator_t, size_t* workspace, size_t* alignment, pthreadpool_t)>
      reshape;
  std::function<xnn_status(xnn_operator_t, void* workspace, std::span<void* const> addresses)>
      setup;
  threads::GemmHint hint;
  // The scratch memory is filled with zeros before each run: an operator that packs a matrix there
  // leaves out what its panels hold beyond the matrix, and counts on zeros.
  bool needsZeroWorkspace = false;
};

// Whether a quotient of scales lies in [2^lowest, 2^highest). XNNPACK only asserts the limits of
// its fixed-point arithmetic, and a failed assertion ends the process: check before creating an
// operator.
inline bool isScaleInRange(double scale, int lowest, int highest) {
  return scale >= std::ldexp(1.0, lowest) && scale < std::ldexp(1.0, highest);
}

// Whether the quotients of scales of a layer's input, filter and output are within the limits of
// XNNPACK's requantisation, for every output channel. True for float32.
bool requantizationFits(const graph::Operand& input, const graph::Operand& filter,
                        const graph::Operand& output);

// Whether an activation leaves an integer output more than one possible value, which XNNPACK
// asserts, too. True for floats.
bool activationFits(ops::FusedActivation activation, const graph::Operand& output);

// Packs the weights of a kernel of ours: create(&op) makes XNNPACK's operator, which is not kept.
// Error: xnnError() of the creation call `call`.
template <typename Create>
Status packByXnnpack(const char* call, const Create& create) {
  xnn_operator_t op = nullptr;
  if (const xnn_status status = create(&op); status != xnn_status_success)
    return std::unexpected(xnnError(status, call));
  const XnnOperator packed(op);
  return {};
}

// The status of a reshape call that gave an image of this size, which must be the layer's.
inline xnn_status statusOfReshape(xnn_status status, size_t height, size_t width,
                                  size_t outputHeight, size_t outputWidth) {
  if (status == xnn_status_success && (height != outputHeight || width != outputWidth))
    return xnn_status_unsupported_parameter;
  return status;
}

// Makes a kernel that owns the operator that the creation call `call` made. Error: xnnError() of
// `status` when the call failed.
Result<std::unique_ptr<Kernel>> makeXnnKernel(const char* call, xnn_status status,
                                              xnn_operator_t op, XnnCalls calls);

}  // namespace hearth::cpu
