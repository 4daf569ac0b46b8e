// SPDX-License-Identifier: Apache-2.0
#include "frontends/nnapi/objects/devices.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/immortal.h"
#include "hal/extension_operations.h"

namespace hearth::nnapi {
namespace {

using Handles = std::vector<std::unique_ptr<ANeuralNetworksDevice>>;

Handles makeHandles(const DeviceList& devices) {
  Handles handles;
  for (const std::shared_ptr<hal::Device>& device : devices)
    handles.emplace_back(new ANeuralNetworksDevice{device, device->name(), device->version()});
  return handles;
}

Handles& handles() {
  const DeviceList& list = runtime::DeviceManager::shared().devices();
  // Clients keep pointers into the list, so it is never destroyed.
  static constinit base::Immortal<Handles> handles;
  return handles.get([&] { return makeHandles(list); });
}

// A list that replaces the real devices.
struct TestDevices {
  explicit TestDevices(DeviceList list)
      : manager(runtime::DeviceManager::registrable(std::move(list))),
        handles(makeHandles(manager.devices())) {}

  const runtime::DeviceManager manager;
  const Handles handles;
};

const TestDevices*& testDevices() {
  static const TestDevices* devices = nullptr;
  return devices;
}

}  // namespace

std::span<const std::unique_ptr<ANeuralNetworksDevice>> devices() {
  const TestDevices* const test = testDevices();
  return test != nullptr ? test->handles : handles();
}

const runtime::DeviceManager& deviceManager() {
  const TestDevices* const test = testDevices();
  return test != nullptr ? test->manager : runtime::DeviceManager::shared();
}

Result<DeviceList> deviceList(const ANeuralNetworksDevice* const* list, uint32_t count) {
  if (list == nullptr) return fail(ErrorCode::kUnexpectedNull, "The list of devices is null.");
  if (count == 0) return fail(ErrorCode::kBadData, "The list of devices is empty.");
  const auto known = devices();
  if (count > known.size())
    return fail(ErrorCode::kBadData, "The list has {} devices; there are {}.", count, known.size());
  DeviceList found;
  for (uint32_t i = 0; i < count; ++i) {
    if (list[i] == nullptr)
      return fail(ErrorCode::kUnexpectedNull, "Device {} of the list is null.", i);
    const auto it = std::find_if(known.begin(), known.end(),
                                 [&](const auto& handle) { return handle.get() == list[i]; });
    if (it == known.end())
      return fail(ErrorCode::kBadData, "Device {} of the list is no device.", i);
    if (std::find(list, list + i, list[i]) != list + i)
      return fail(ErrorCode::kBadData, "The device {} is in the list twice.", (*it)->name);
    found.push_back((*it)->device);
  }
  return found;
}

std::vector<std::string> clientExtensions(const hal::Device& device) {
  std::vector<std::string> names = device.supportedExtensions();
  std::erase(names, hal::kCustomExtensionName);
  std::erase(names, hal::kStringExtensionName);
  return names;
}

void setDevicesForTest(DeviceList devices) {
  // Handles of earlier lists stay valid, like those of the real devices.
  static auto* const lists = new std::vector<std::unique_ptr<TestDevices>>;
  if (devices.empty()) {
    testDevices() = nullptr;
    return;
  }
  lists->push_back(std::make_unique<TestDevices>(std::move(devices)));
  testDevices() = lists->back().get();
}

}  // namespace hearth::nnapi
