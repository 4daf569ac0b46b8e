// SPDX-License-Identifier: Apache-2.0
// The functions of the C API that describe the devices and the runtime.
#include <algorithm>
#include <string_view>

#include "android/NeuralNetworksExtensions.h"
#include "frontends/nnapi/entry_points/call.h"
#include "frontends/nnapi/objects/devices.h"
#include "frontends/nnapi/objects/execution.h"

using namespace hearth;
using namespace hearth::nnapi;

namespace {

constexpr int64_t kRuntimeFeatureLevel = ANEURALNETWORKS_FEATURE_LEVEL_7;

}  // namespace

int ANeuralNetworks_getDeviceCount(uint32_t* numDevices) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(numDevices);
    *numDevices = static_cast<uint32_t>(devices().size());
    return {};
  });
}

int ANeuralNetworks_getDevice(uint32_t devIndex, ANeuralNetworksDevice** device) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(device);
    *device = nullptr;
    const auto known = devices();
    if (devIndex >= known.size())
      return fail(ErrorCode::kBadData, "There is no device {}; there are {}.", devIndex,
                  known.size());
    *device = known[devIndex].get();
    return {};
  });
}

int ANeuralNetworksDevice_getName(const ANeuralNetworksDevice* device, const char** name) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(device);
    HEARTH_NOT_NULL(name);
    *name = device->name.c_str();
    return {};
  });
}

int ANeuralNetworksDevice_getVersion(const ANeuralNetworksDevice* device, const char** version) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(device);
    HEARTH_NOT_NULL(version);
    *version = device->version.c_str();
    return {};
  });
}

int ANeuralNetworksDevice_getType(const ANeuralNetworksDevice* device, int32_t* type) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(device);
    HEARTH_NOT_NULL(type);
    *type = static_cast<int32_t>(device->device->type());
    return {};
  });
}

int ANeuralNetworksDevice_getFeatureLevel(const ANeuralNetworksDevice* device,
                                          int64_t* featureLevel) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(device);
    HEARTH_NOT_NULL(featureLevel);
    *featureLevel = device->device->featureLevel();
    return {};
  });
}

int ANeuralNetworksDevice_wait(const ANeuralNetworksDevice* device) {
  return call(__func__, [&]() -> Status {
    // Every listed device is ready.
    HEARTH_NOT_NULL(device);
    return {};
  });
}

int ANeuralNetworksDevice_getExtensionSupport(const ANeuralNetworksDevice* device,
                                              const char* extensionName,
                                              bool* isExtensionSupported) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(device);
    HEARTH_NOT_NULL(extensionName);
    HEARTH_NOT_NULL(isExtensionSupported);
    const std::vector<std::string> names = clientExtensions(*device->device);
    *isExtensionSupported =
        std::find(names.begin(), names.end(), std::string_view(extensionName)) != names.end();
    return {};
  });
}

int64_t ANeuralNetworks_getRuntimeFeatureLevel() {
  return kRuntimeFeatureLevel;
}

uint64_t ANeuralNetworks_getDefaultLoopTimeout() {
  return kDefaultLoopTimeout;
}

uint64_t ANeuralNetworks_getMaximumLoopTimeout() {
  return kMaxLoopTimeout;
}
