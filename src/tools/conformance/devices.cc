// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/devices.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/env.h"
#include "drivers/cpu/cpu_device.h"
#include "drivers/reference/reference_device.h"
#include "hal/driver_library.h"
#include "ipc/host_list.h"

namespace hearth::conformance {

std::vector<DeviceFactory> builtInDevices() {
  return {{cpu::kCpuDeviceName, cpu::createCpuDevice}, {"nnapi-reference", [] {
                                                          return drivers::reference::createDevice();
                                                        }}};
}

std::vector<DeviceFactory> allDevices() {
  std::vector<DeviceFactory> devices = builtInDevices();
  // The runtime ignores an invalid list, too.
  const auto places = ipc::parseHostList(base::envString(base::Env::kDriverHosts))
                          .value_or(std::map<std::string, ipc::HostPlace>());
  const auto placeNamed = [&](const std::string& name) -> std::optional<ipc::HostPlace> {
    const auto place = places.find(name);
    return place == places.end() ? std::nullopt : std::optional(place->second);
  };
  for (DeviceFactory& device : devices)
    if (const auto place = placeNamed(device.name);
        place && place->kind != ipc::HostPlace::Kind::kProcess)
      device.create = [name = device.name, where = *place] {
        return ipc::deviceAt(where, name);
      };
  std::vector<std::string> problems;
  for (const std::string& path :
       hal::findDriverManifests(base::envString(base::Env::kDriverPath), &problems))
    if (auto manifest = hal::readDriverManifest(path))
      devices.push_back({manifest->name,
                         [manifest = *manifest, named = placeNamed(manifest->name)]()
                             -> Result<std::shared_ptr<hal::Device>> {
                           const auto place = named ? named : ipc::placeOf(manifest);
                           if (!place || place->kind == ipc::HostPlace::Kind::kProcess)
                             return hal::loadDriver(manifest);
                           return ipc::deviceAt(*place, manifest);
                         }});
  return devices;
}

}  // namespace hearth::conformance
