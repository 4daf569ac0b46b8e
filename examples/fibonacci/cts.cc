// SPDX-License-Identifier: Apache-2.0
#include "fibonacci_device.h"
#include "hal/cts/backend.h"

namespace {

const bool isRegistered =
    hearth::hal::cts::registerBackend({"fibonacci", [] {
                                         return example::createFibonacciDevice();
                                       }});

}  // namespace
