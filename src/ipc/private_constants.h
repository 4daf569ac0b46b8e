// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "graph/model.h"

namespace hearth::ipc {

// Copies the constants that a driver checks once and then relies on, indices, sizes and such, from
// the pools of a valid model into the model, so that their owner cannot change them afterwards.
// Numbers that are only computed with, weights and biases, stay where they are. kUnsupported when
// that are more than 64 MiB.
Status makeConstantsPrivate(graph::Model* model);

}  // namespace hearth::ipc
