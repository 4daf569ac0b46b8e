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
#include "ipc/hosted_device.h"

namespace hearth::ipc {

// Where a device is served.
struct HostPlace {
  // In this process; in a host of this process; in one of the user's (ipc/user_host.h); behind a
  // socket.
  enum class Kind { kProcess, kSpawn, kShared, kSocket };
  Kind kind = Kind::kSpawn;
  std::string path;  // of the program, empty for the command hearth; or of the socket
};

// Parses HEARTH_DRIVER_HOSTS: DEVICE=PLACE, separated by commas, where PLACE is `process`, `spawn`,
// `spawn:PROGRAM`, `shared` or the path of a socket. kBadData names the entry that is none of
// these.
Result<std::map<std::string, HostPlace>> parseHostList(std::string_view text);

// The device in a host at a place, of which a host to start has the driver itself. Where the user's
// programs cannot share one, it is a host of this process. Errors as HostedDevice::create().
Result<std::shared_ptr<HostedDevice>> deviceAt(const HostPlace& place, const std::string& device);
// The same for a device with a manifest. A host to start gets the manifest, and the variables of
// this process that the driver needs.
Result<std::shared_ptr<HostedDevice>> deviceAt(const HostPlace& place,
                                               const hal::DriverManifest& manifest);

// Where a manifest says that its device is; nothing when the library is for this process. That is
// also so for a library that is to be shared where the command hearth, the host, is not installed.
std::optional<HostPlace> placeOf(const hal::DriverManifest& manifest);

}  // namespace hearth::ipc
