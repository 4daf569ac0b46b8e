// SPDX-License-Identifier: Apache-2.0
// The registry of drivers for the conformance suite of the driver interface.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hal/device.h"

namespace hearth::hal::cts {

// A device to test. `create` is called once in each process. kUnsupported means that the device
// cannot run on this machine and skips its tests; any other error fails them.
struct Backend {
  std::string name;  // letters, digits and '_' only, as part of the tests' names
  std::function<Result<std::shared_ptr<Device>>()> create;
};

// Called by a static initialiser in a driver's cts.cc; returns true, as a value to initialise with.
bool registerBackend(Backend backend);

const std::vector<Backend>& backends();

}  // namespace hearth::hal::cts
