// SPDX-License-Identifier: Apache-2.0
// The device functions of hearth.h.
#include "api/handles.h"
#include "base/env.h"
#include "base/immortal.h"
#include "ipc/hosted_device.h"
#include "runtime/device_manager.h"

namespace {

using hearth::api::fillSized;
using hearth::api::guarded;

struct DeviceText {
  std::string name;
  std::string version;
  std::string extensions;
};

// The devices' strings; they live as long as the process, as the API promises.
const std::vector<DeviceText>& deviceTexts() {
  const auto& devices = hearth::runtime::DeviceManager::shared().devices();
  static constinit hearth::base::Immortal<std::vector<DeviceText>> texts;
  return texts.get([&] {
    std::vector<DeviceText> list;
    for (const auto& device : devices) {
      DeviceText text{device->name(), device->version(), ""};
      for (const std::string& extension : device->supportedExtensions())
        text.extensions += (text.extensions.empty() ? "" : " ") + extension;
      list.push_back(std::move(text));
    }
    return list;
  });
}

hearth::Result<std::shared_ptr<hearth::hal::Device>> deviceAt(size_t index) {
  const auto& devices = hearth::runtime::DeviceManager::shared().devices();
  if (index < devices.size()) return devices[index];
  return hearth::fail(hearth::ErrorCode::kNotFound, "There is no device {}; there are {}.", index,
                      devices.size());
}

// Those with which speeds are measured.
hearth::Result<hearth::hal::PrepareOptions> speedOptions() {
  hearth::hal::PrepareOptions options;
  HEARTH_ASSIGN(const int64_t threads, hearth::base::envInteger(hearth::base::Env::kThreads));
  options.threads = static_cast<unsigned>(threads);
  return options;
}

}  // namespace

extern "C" {

size_t hearth_device_count(void) {
  size_t count = 0;
  guarded(nullptr, [&]() -> hearth::Status {
    count = deviceTexts().size();
    return {};
  });
  return count;
}

hearth_status hearth_device_get(size_t index, hearth_device_info* info, hearth_error** error) {
  return guarded(error, [&]() -> hearth::Status {
    HEARTH_ASSIGN(const std::shared_ptr<hearth::hal::Device> device, deviceAt(index));
    const DeviceText& text = deviceTexts()[index];
    hearth_device_info made{};
    made.name = text.name.c_str();
    made.version = text.version.c_str();
    made.type = static_cast<int32_t>(device->type());
    made.feature_level = device->featureLevel();
    made.extensions = text.extensions.c_str();
    return fillSized(info, made);
  });
}

hearth_status hearth_device_host(size_t index, hearth_host_info* info, hearth_error** error) {
  return guarded(error, [&]() -> hearth::Status {
    HEARTH_ASSIGN(const std::shared_ptr<hearth::hal::Device> device, deviceAt(index));
    hearth_host_info made{};
    if (const auto* const hosted = dynamic_cast<hearth::ipc::HostedDevice*>(device.get())) {
      const hearth::ipc::HostedDevice::State state = hosted->state();
      made.kind = state.isShared ? HEARTH_HOST_SHARED : HEARTH_HOST_SPAWNED;
      made.process = state.process;
      made.clients = state.clients;
      made.memory_bytes = state.memory;
      made.restarts = state.restarts;
    }
    return fillSized(info, made);
  });
}

hearth_status hearth_device_speed(size_t index, hearth_speed_info* info, hearth_error** error) {
  return guarded(error, [&]() -> hearth::Status {
    HEARTH_ASSIGN(const std::shared_ptr<hearth::hal::Device> device, deviceAt(index));
    hearth_speed_info made{};
    if (hearth::runtime::DeviceSpeeds* const speeds =
            hearth::runtime::DeviceManager::shared().speeds()) {
      HEARTH_ASSIGN(const hearth::hal::PrepareOptions options, speedOptions());
      if (const auto speed = speeds->known(*device, options)) {
        using hearth::runtime::NumberKind;
        made.execution = speed->execution;
        made.operation = speed->operation;
        made.argument_byte = speed->argumentByte;
        made.moved_byte = speed->movedByte;
        made.float32_product = speed->productOf(NumberKind::kFloat32);
        made.float16_product = speed->productOf(NumberKind::kFloat16);
        made.quantized_product = speed->productOf(NumberKind::kQuantized);
      }
    }
    return fillSized(info, made);
  });
}

hearth_status hearth_device_measure(size_t index, hearth_error** error) {
  return guarded(error, [&]() -> hearth::Status {
    HEARTH_ASSIGN(const std::shared_ptr<hearth::hal::Device> device, deviceAt(index));
    hearth::runtime::DeviceSpeeds* const speeds = hearth::runtime::DeviceManager::shared().speeds();
    if (speeds == nullptr)
      return hearth::fail(hearth::ErrorCode::kUnsupported,
                          "No driver asks for its device to be measured.");
    HEARTH_ASSIGN(const hearth::hal::PrepareOptions options, speedOptions());
    HEARTH_TRY(speeds->renew(*device, options));
    return {};
  });
}

}  // extern "C"
