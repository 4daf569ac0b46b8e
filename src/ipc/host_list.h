// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hal/device.h"
#include "hal/driver_manifest.h"

namespace hearth::ipc {

// Where a device is served.
struct HostPlace {
  enum class Kind { kSpawn, kSocket };
  Kind kind = Kind::kSpawn;
  std::string path;  // of the program, empty for the command hearth; or of the socket
};

// Parses HEARTH_DRIVER_HOSTS: DEVICE=PLACE, separated by commas, where PLACE is `spawn`,
// `spawn:PROGRAM` or the path of a socket. kBadData names the entry that is none of these.
Result<std::map<std::string, HostPlace>> parseHostList(std::string_view text);

// The device in a host at a place, of which a host to spawn has the driver itself. Errors as
// HostedDevice::create().
Result<std::shared_ptr<hal::Device>> deviceAt(const HostPlace& place, const std::string& device);
// The same for a device with a manifest. A host to spawn gets the manifest, and the variables of
// this process that the driver needs.
Result<std::shared_ptr<hal::Device>> deviceAt(const HostPlace& place,
                                              const hal::DriverManifest& manifest);

// Where a manifest says that its device is served; nothing when the library is for this process.
std::optional<HostPlace> placeOf(const hal::DriverManifest& manifest);

}  // namespace hearth::ipc
