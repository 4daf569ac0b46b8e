// SPDX-License-Identifier: Apache-2.0
// Loads drivers from libraries into this process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hal/device.h"
#include "hal/driver_manifest.h"

namespace hearth::hal {

// An optional driver that has nothing to work with.
struct LeftOutDriver {
  std::string name;    // of the device
  std::string reason;  // a sentence
};

struct DiscoveredDrivers {
  std::vector<std::shared_ptr<Device>> devices;  // in the order of the search path
  std::vector<std::string> problems;             // one sentence for each driver that was skipped
  std::vector<LeftOutDriver> leftOut;            // these are no problems
};

// Whether the driver may be left out without a message: it is optional, and nobody asks for it by
// the variable that the manifest names.
bool mayBeLeftOut(const DriverManifest& manifest);

// What a driver lacks, as a sentence: its library, a node of its devices, or all of those of which
// each machine has others. Nothing where it may be tried. Opens no library.
std::optional<std::string> whatIsMissing(const DriverManifest& manifest);

// Loads a library, which is never unloaded, and makes its device, whatever its name, or another of
// its numbered devices. Errors: kNotFound where the loader cannot; kBadData without the symbol for
// that; kUnavailableDevice for a driver that makes no device, with its reason.
Result<std::shared_ptr<Device>> loadDriverLibrary(const std::string& path, uint32_t number = 1);

// How many devices the library says that it has, from which this process has made one; 1 where it
// does not say.
uint32_t countOfDevices(const DriverManifest& manifest);

// Loads the library and makes its device. The library is never unloaded. Errors: kUnsupported for
// another api_version, without a library, or for a support library, which only a host loads;
// kNotFound, kIo or kBadData when library, symbol or device are not what the manifest says.
Result<std::shared_ptr<Device>> loadDriver(const DriverManifest& manifest);

// Makes the device of a manifest.
using DeviceMaker = std::function<Result<std::shared_ptr<Device>>(const DriverManifest& manifest)>;

// Makes the devices of every driver of a colon-separated search path. Of manifests in several
// folders that name one device the first that makes it counts. Skips a driver that cannot be made,
// or has the name of another one in its folder or of `takenNames`, with a warning in the log. One
// that may be left out is, if something is missing, without an attempt, or if it makes no device
// (kUnavailableDevice); devices with `wantedNames` are not optional. Of numbered devices those
// behind the first are made until one is not there, and those with `wantedNames`.
DiscoveredDrivers discoverDrivers(std::string_view searchPath,
                                  const std::vector<std::string>& takenNames,
                                  const DeviceMaker& make = loadDriver,
                                  const std::vector<std::string>& wantedNames = {});

// The same for HEARTH_DRIVER_PATH.
DiscoveredDrivers discoverDrivers(const std::vector<std::string>& takenNames,
                                  const DeviceMaker& make = loadDriver,
                                  const std::vector<std::string>& wantedNames = {});

}  // namespace hearth::hal
