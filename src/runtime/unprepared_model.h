// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "hal/device.h"

namespace hearth::runtime {

// Takes the place of a prepared model where a compilation is only explained: it has the report of a
// start, and its executions fail with kBadState.
std::shared_ptr<hal::PreparedModel> unpreparedModel(hal::StartReport report);

}  // namespace hearth::runtime
