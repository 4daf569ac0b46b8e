// SPDX-License-Identifier: Apache-2.0
// The device functions of hearth.h.
#include "api/handles.h"
#include "base/immortal.h"
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
    const std::vector<DeviceText>& texts = deviceTexts();
    if (index >= texts.size())
      return hearth::fail(hearth::ErrorCode::kNotFound, "There is no device {}; there are {}.",
                          index, texts.size());
    const hearth::hal::Device& device = *hearth::runtime::DeviceManager::shared().devices()[index];
    hearth_device_info made{};
    made.name = texts[index].name.c_str();
    made.version = texts[index].version.c_str();
    made.type = static_cast<int32_t>(device.type());
    made.feature_level = device.featureLevel();
    made.extensions = texts[index].extensions.c_str();
    return fillSized(info, made);
  });
}

}  // extern "C"
