// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/devices.h"

#include "base/env.h"
#include "drivers/cpu/cpu_device.h"
#include "drivers/reference/reference_device.h"
#include "hal/driver_library.h"

namespace hearth::conformance {

std::vector<DeviceFactory> builtInDevices() {
  return {{cpu::kCpuDeviceName, cpu::createCpuDevice}, {"nnapi-reference", [] {
                                                          return drivers::reference::createDevice();
                                                        }}};
}

std::vector<DeviceFactory> allDevices() {
  std::vector<DeviceFactory> devices = builtInDevices();
  std::vector<std::string> problems;
  for (const std::string& path :
       hal::findDriverManifests(base::envString(base::Env::kDriverPath), &problems))
    if (auto manifest = hal::readDriverManifest(path))
      devices.push_back({manifest->name, [manifest = *manifest] {
                           return hal::loadDriver(manifest);
                         }});
  return devices;
}

}  // namespace hearth::conformance
