// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/devices.h"

#include "drivers/reference/reference_device.h"

namespace hearth::conformance {

std::vector<DeviceFactory> builtInDevices() {
  return {{"nnapi-reference", [] { return drivers::reference::createDevice(); }}};
}

}  // namespace hearth::conformance
