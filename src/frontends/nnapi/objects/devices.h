// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "android/NeuralNetworksTypes.h"
#include "base/result.h"
#include "hal/device.h"
#include "runtime/device_manager.h"

// A device as clients see it. Never freed.
struct ANeuralNetworksDevice {
  const std::shared_ptr<hearth::hal::Device> device;
  const std::string name;
  const std::string version;
};

namespace hearth::nnapi {

using DeviceList = std::vector<std::shared_ptr<hal::Device>>;

// All devices, the reference last. The first call makes the handles, from
// runtime::DeviceManager::shared(); they live as long as the process. Thread-safe.
std::span<const std::unique_ptr<ANeuralNetworksDevice>> devices();

// The devices behind handles. kUnexpectedNull for a null list or handle; kBadData for an empty
// list, an unknown handle, and a handle that is in the list twice.
Result<DeviceList> deviceList(const ANeuralNetworksDevice* const* handles, uint32_t count);

// The devices behind devices(), for compilations.
const runtime::DeviceManager& deviceManager();

// The extensions of a device whose codes clients may use: not hearth.custom, which has none.
std::vector<std::string> clientExtensions(const hal::Device& device);

// Replaces the real devices by these; an empty list restores the real ones. Only for tests, while
// no other thread uses the API.
void setDevicesForTest(DeviceList devices);

}  // namespace hearth::nnapi
