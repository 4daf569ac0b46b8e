// SPDX-License-Identifier: Apache-2.0
// What every driver checks before it prepares a model.
#pragma once

#include "base/result.h"
#include "graph/model.h"
#include "hal/device.h"

namespace hearth::hal {

// kMissedDeadlinePersistent when the deadline of the preparation has passed.
Status checkDeadline(const PrepareOptions& options);

// Whether a driver can look at the model and has time for it. Errors: kUnexpectedNull without a
// model; those of checkDeadline() and checkPoolsMapped(); those of graph::validateOnce(). The
// arguments of operations are for ops::validateOperationsOnce() to check.
Status checkPreparation(const graph::Model* model, const PrepareOptions& options);

}  // namespace hearth::hal
