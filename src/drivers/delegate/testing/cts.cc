// SPDX-License-Identifier: Apache-2.0
#include "drivers/delegate/delegate_device.h"
#include "hal/cts/backend.h"

namespace {

using namespace hearth::drivers::delegate;

const bool isRegistered = hearth::hal::cts::registerBackend(
    {"delegate", []() -> std::shared_ptr<hearth::hal::Device> {
       auto device = createDevice({.name = "own-delegate",
                                   .library = HEARTH_OWN_DELEGATE,
                                   .options = {{"device", "hearth-cpu"}, {"store_mode", "off"}},
                                   .version = {}});
       return device ? *std::move(device) : nullptr;
     }});

}  // namespace
