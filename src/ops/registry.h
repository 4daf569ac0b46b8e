// SPDX-License-Identifier: Apache-2.0
// Declares the definition of every operation: kAddOperation and so on. The file of an operation
// includes this header and defines its constant.
#pragma once

#include "ops/operation.h"

namespace hearth::ops {

#define HEARTH_OPERATION(name) extern const OperationDefinition k##name##Operation;
#include "ops/registry.inc"
#undef HEARTH_OPERATION

}  // namespace hearth::ops
