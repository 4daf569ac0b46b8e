// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hal/device.h"

namespace hearth::conformance {

// A device that can be created anew in each worker process.
struct DeviceFactory {
  std::string name;
  std::function<Result<std::shared_ptr<hal::Device>>()> create;
};

// The devices of this build.
std::vector<DeviceFactory> builtInDevices();

// The devices of this build and the drivers along HEARTH_DRIVER_PATH, loaded when they are created;
// each behind a host where its manifest or HEARTH_DRIVER_HOSTS says so.
std::vector<DeviceFactory> allDevices();

}  // namespace hearth::conformance
