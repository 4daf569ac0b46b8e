// SPDX-License-Identifier: Apache-2.0
// `hearth devices`.
#include <iostream>
#include <nlohmann/json.hpp>

#include "tools/commands.h"
#include "tools/text_table.h"

namespace hearth::tools {
namespace {

const char* typeText(hearth_device_type type) {
  switch (type) {
    case HEARTH_DEVICE_OTHER:
      return "other";
    case HEARTH_DEVICE_CPU:
      return "cpu";
    case HEARTH_DEVICE_GPU:
      return "gpu";
    case HEARTH_DEVICE_ACCELERATOR:
      return "accelerator";
    case HEARTH_DEVICE_UNKNOWN:
      break;
  }
  return "unknown";
}

}  // namespace

Outcome<void> devicesCommand(const DevicesOptions& options) {
  std::vector<Device> list;
  try {
    list = devices();
  } catch (const Exception& exception) {
    return std::unexpected(Failure(exception));
  }
  if (options.isJson) {
    using Json = nlohmann::ordered_json;
    Json json = {{"devices", Json::array()}};
    for (const Device& device : list)
      json["devices"].push_back({{"name", device.name},
                                 {"version", device.version},
                                 {"type", typeText(device.type)},
                                 {"feature_level", device.featureLevel},
                                 {"extensions", device.extensions}});
    std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    return {};
  }
  TextTable table({"device", "type", "version", "feature level", "extensions"}, "lllrl");
  for (const Device& device : list)
    table.add({printable(device.name), typeText(device.type), printable(device.version),
               std::to_string(device.featureLevel), printable(device.extensions)});
  std::cout << table.toString();
  return {};
}

}  // namespace hearth::tools
