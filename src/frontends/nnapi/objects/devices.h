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

// All devices, the reference last. Made at the first call, from runtime::DeviceManager::shared().
std::span<const std::unique_ptr<ANeuralNetworksDevice>> devices();

// The devices behind handles. kUnexpectedNull for a null handle; kBadData for none, one that is not
// of devices(), and one that is there twice.
Result<DeviceList> deviceList(const ANeuralNetworksDevice* const* handles, uint32_t count);

// The devices behind devices(), for compilations.
const runtime::DeviceManager& deviceManager();

// Puts these devices in place of the real ones, none brings those back. Only for tests, while no
// other thread uses the API.
void setDevicesForTest(DeviceList devices);

}  // namespace hearth::nnapi
