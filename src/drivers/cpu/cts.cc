// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/cpu_device.h"
#include "hal/cts/backend.h"

namespace {

const bool isRegistered =
    hearth::hal::cts::registerBackend({"cpu", [] {
                                         return hearth::cpu::createCpuDevice();
                                       }});

}  // namespace
