// SPDX-License-Identifier: Apache-2.0
// Devices of support libraries of NNAPI (support_library.h) as devices of Hearth.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "drivers/support_library/support_library.h"
#include "hal/device.h"

namespace hearth::drivers::support_library {

// The device of a library under a name of ours. `device` is its name in the library; empty where
// the library has only one. kNotFound names the devices that there are; kBadData for a library
// whose answers are not NNAPI's.
Result<std::shared_ptr<hal::Device>> createDevice(std::shared_ptr<const SupportLibrary> library,
                                                  std::string name, const std::string& device);

}  // namespace hearth::drivers::support_library
