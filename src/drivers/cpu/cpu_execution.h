// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "hal/device.h"
#include "hal/request_check.h"

namespace hearth::cpu {

class CpuPreparedModel;

// An execution of the model with these arguments, which are used in place.
std::unique_ptr<hal::Execution> cpuExecution(std::shared_ptr<CpuPreparedModel> prepared,
                                             hal::BoundRequest request);

}  // namespace hearth::cpu
