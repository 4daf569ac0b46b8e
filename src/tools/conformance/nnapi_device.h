// SPDX-License-Identifier: Apache-2.0
// A device that is reached through the C API of NNAPI: what it is given becomes calls of
// ANeuralNetworks*, so that whatever tests devices tests the API, too.
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
  kFenced,        // where an output's size is unknown, sync first: fences need types that give it
  kReusable,      // one execution for all computations
  kDeviceMemory,  // arguments in device memories; sync with pointers where a size is unknown
  kSharedMemory,  // arguments in one shared memory
  kCached,        // sync, compiled twice with a token: the second time from the cache
};

const char* nameOf(NnapiMode mode);
std::vector<NnapiMode> allNnapiModes();
// kBadData names the modes that there are.
Result<NnapiMode> parseNnapiMode(std::string_view name);

// The device of this name behind the C API; an empty name leaves the choice to the runtime (default
// list, fallback). kNotFound when the API does not list it.
Result<std::shared_ptr<hal::Device>> connectNnapiDevice(const std::string& name, NnapiMode mode);

// The devices of this build through the C API, and "default" for the runtime's own choice.
std::vector<DeviceFactory> nnapiDevices(NnapiMode mode);

}  // namespace hearth::conformance
