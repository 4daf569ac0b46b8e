// SPDX-License-Identifier: Apache-2.0
// A device that turns models and requests into calls of NNAPI's C API, so that tests of devices
// test the API, too.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hal/device.h"
#include "tools/conformance/devices.h"

namespace hearth::conformance {

// How executions are computed.
enum class NnapiMode {
  kSync,
  kAsync,
  kBurst,
  kFenced,        // sync first if an output's size is unknown: fences need types that give it
  kReusable,      // one execution for all computations
  kDeviceMemory,  // arguments in device memories; sync with pointers if an input's size is unknown
  kSharedMemory,  // arguments in one shared memory
  kCached,        // sync, compiled twice with a token: the second time from the cache
};

const char* nameOf(NnapiMode mode);
std::vector<NnapiMode> allNnapiModes();
// kBadData for an unknown name; the message lists the modes.
Result<NnapiMode> parseNnapiMode(std::string_view name);

// Connects to the device of this name behind the C API; an empty name leaves the choice to the
// runtime (default list, fallback). kNotFound when the API does not list the device.
Result<std::shared_ptr<hal::Device>> connectNnapiDevice(const std::string& name, NnapiMode mode);

// The devices of this build through the C API, and "default" for the runtime's own choice.
std::vector<DeviceFactory> nnapiDevices(NnapiMode mode);

}  // namespace hearth::conformance
