// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/devices.h"

#include "drivers/cpu/cpu_device.h"
#include "drivers/reference/reference_device.h"

namespace hearth::conformance {

std::vector<DeviceFactory> builtInDevices() {
  return {{cpu::kCpuDeviceName, cpu::createCpuDevice}, {"nnapi-reference", [] {
                                                          return drivers::reference::createDevice();
                                                        }}};
}

}  // namespace hearth::conformance
