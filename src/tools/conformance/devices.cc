// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/devices.h"

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
  const auto places = ipc::parseHostList(base::envString(base::Env::kDriverHosts));
  if (places)
    for (DeviceFactory& device : devices)
      if (const auto place = places->find(device.name); place != places->end())
        device.create = [name = device.name, where = place->second] {
          return ipc::deviceAt(where, name);
        };
  std::vector<std::string> problems;
  for (const std::string& path :
       hal::findDriverManifests(base::envString(base::Env::kDriverPath), &problems))
    if (auto manifest = hal::readDriverManifest(path))
      devices.push_back(
          {manifest->name, [manifest = *manifest]() -> Result<std::shared_ptr<hal::Device>> {
             const auto place = ipc::placeOf(manifest);
             return place ? ipc::deviceAt(*place, manifest) : hal::loadDriver(manifest);
           }});
  return devices;
}

}  // namespace hearth::conformance
