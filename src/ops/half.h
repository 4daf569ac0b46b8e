// SPDX-License-Identifier: Apache-2.0
// The element type of TENSOR_FLOAT16: IEEE binary16. Kernels compute in float and round once.
#pragma once

namespace hearth::ops {

using Half = _Float16;

}  // namespace hearth::ops
