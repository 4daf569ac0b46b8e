// SPDX-License-Identifier: Apache-2.0
// Loads drivers from libraries into this process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hal/device.h"
#include "hal/driver_manifest.h"

namespace hearth::hal {

struct DiscoveredDrivers {
  std::vector<std::shared_ptr<Device>> devices;  // in the order of the search path
  std::vector<std::string> problems;             // one sentence for each driver that was skipped
};

// Loads a library, which is never unloaded, and makes its device, whatever its name. Errors:
// kNotFound where the loader cannot; kBadData without kDriverCreateSymbol; kUnavailableDevice for a
// driver that makes no device, with its reason.
Result<std::shared_ptr<Device>> loadDriverLibrary(const std::string& path);

// Loads the library and makes its device. The library is never unloaded. Errors: kUnsupported for
// another api_version, without a library, or for a support library, which only a host loads;
// kNotFound, kIo or kBadData when library, symbol or device are not what the manifest says.
Result<std::shared_ptr<Device>> loadDriver(const DriverManifest& manifest);

// Makes the device of a manifest.
using DeviceMaker = std::function<Result<std::shared_ptr<Device>>(const DriverManifest& manifest)>;

// Makes the device of every driver of a colon-separated search path. Skips a driver that cannot be
// made, or has the name of an earlier one or of `takenNames`, with a warning in the log.
DiscoveredDrivers discoverDrivers(std::string_view searchPath,
                                  const std::vector<std::string>& takenNames,
                                  const DeviceMaker& make = loadDriver);

// The same for HEARTH_DRIVER_PATH.
DiscoveredDrivers discoverDrivers(const std::vector<std::string>& takenNames,
                                  const DeviceMaker& make = loadDriver);

}  // namespace hearth::hal
