// SPDX-License-Identifier: Apache-2.0
#include "drivers/null/null_device.h"
#include "hal/cts/backend.h"

namespace {

const bool isRegistered =
    hearth::hal::cts::registerBackend({"null", [] {
                                         return hearth::drivers::null::createDevice();
                                       }});

}  // namespace
