// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "hal/device.h"

namespace hearth::runtime {

// Stands for a prepared model when a compilation is only explained: it returns the report of a
// start, and createExecution() fails with kBadState.
std::shared_ptr<hal::PreparedModel> explainedModel(hal::StartReport report);

}  // namespace hearth::runtime
