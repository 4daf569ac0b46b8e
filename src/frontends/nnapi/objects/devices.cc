// SPDX-License-Identifier: Apache-2.0
#include "frontends/nnapi/objects/devices.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/immortal.h"
#include "runtime/device_manager.h"
#include "runtime/partitioner.h"

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
  // Clients keep pointers into it.
  static constinit base::Immortal<Handles> handles;
  return handles.get([&] { return makeHandles(list); });
}

Handles*& handlesForTest() {
  static Handles* handles = nullptr;
  return handles;
}

}  // namespace

std::span<const std::unique_ptr<ANeuralNetworksDevice>> devices() {
  const Handles* const test = handlesForTest();
  return test != nullptr ? *test : handles();
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

DeviceList allDevices() {
  DeviceList list;
  for (const auto& handle : devices()) list.push_back(handle->device);
  return list;
}

std::shared_ptr<hal::Device> referenceDevice() {
  for (const auto& handle : devices())
    if (handle->name == runtime::kReferenceDeviceName) return handle->device;
  return nullptr;
}

void setDevicesForTest(DeviceList devices) {
  // Handles of earlier lists stay valid, as those of the real ones do.
  static auto* const lists = new std::vector<std::unique_ptr<Handles>>;
  if (devices.empty()) {
    handlesForTest() = nullptr;
    return;
  }
  lists->push_back(std::make_unique<Handles>(
      makeHandles(runtime::DeviceManager::registrable(std::move(devices)))));
  handlesForTest() = lists->back().get();
}

}  // namespace hearth::nnapi
