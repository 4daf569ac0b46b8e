// SPDX-License-Identifier: Apache-2.0
#include "drivers/reference/reference_device.h"
#include "hal/cts/backend.h"

namespace {

const bool isRegistered =
    hearth::hal::cts::registerBackend({"reference", [] {
                                         return hearth::drivers::reference::createDevice();
                                       }});

}  // namespace
