// SPDX-License-Identifier: Apache-2.0
#include "runtime/device_manager.h"

#ifdef HEARTH_HAS_CPU_DRIVER
#include "drivers/cpu/cpu_device.h"
#endif

namespace hearth::runtime {
namespace {

std::vector<std::shared_ptr<hal::Device>> findDevices() {
  std::vector<std::shared_ptr<hal::Device>> devices;
#ifdef HEARTH_HAS_CPU_DRIVER
  devices.push_back(cpu::createCpuDevice());
#endif
  return devices;
}

}  // namespace

const DeviceManager& DeviceManager::shared() {
  // Never destroyed: threads of a driver may still run while the process exits.
  static const DeviceManager* manager = new DeviceManager(findDevices());
  return *manager;
}

Result<std::shared_ptr<hal::Device>> DeviceManager::find(std::string_view name) const {
  std::string names;
  for (const auto& device : devices_) {
    if (device->name() == name) return device;
    names += (names.empty() ? "" : ", ") + device->name();
  }
  return fail(ErrorCode::kNotFound, "There is no device {}; there are: {}.", name,
              names.empty() ? "none" : names);
}

}  // namespace hearth::runtime
