// SPDX-License-Identifier: Apache-2.0
#include "runtime/device_manager.h"

#include "drivers/cpu/cpu_device.h"
#include "drivers/reference/reference_device.h"

namespace hearth::runtime {
namespace {

std::vector<std::shared_ptr<hal::Device>> findDevices() {
  std::vector<std::shared_ptr<hal::Device>> devices;
  devices.push_back(cpu::createCpuDevice());
  devices.push_back(drivers::reference::createDevice());
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
