// SPDX-License-Identifier: Apache-2.0
// The suite on the CPU's implementation of Vulkan, under the validation layer.
#include "drivers/vulkan/testing/validated_device.h"
#include "hal/cts/backend.h"

namespace {

const bool isRegistered = hearth::hal::cts::registerBackend(
    {"vulkan", []() -> hearth::Result<std::shared_ptr<hearth::hal::Device>> {
       return hearth::vulkan::createValidatedDevice();
     }});

}  // namespace
