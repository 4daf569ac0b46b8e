// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "drivers/vulkan/context/gpu.h"
#include "drivers/vulkan/plan/plan.h"
#include "drivers/vulkan/run_context.h"
#include "hal/device.h"
#include "hal/request_check.h"

namespace hearth::vulkan {

// Lets the GPU reach arguments in memories of the client where it can and where that pays; others
// are copied. `bound` is what checkRequest() made of the request.
void importMemories(const std::shared_ptr<Gpu>& gpu, const Plan& plan, const hal::Request& request,
                    const hal::BoundRequest& bound, DeviceArguments* arguments);

}  // namespace hearth::vulkan
