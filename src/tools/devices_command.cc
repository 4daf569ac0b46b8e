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

const char* kindText(hearth_host_kind kind) {
  switch (kind) {
    case HEARTH_HOST_SPAWNED:
      return "spawned";
    case HEARTH_HOST_SHARED:
      return "shared";
    case HEARTH_HOST_NONE:
      break;
  }
  return "in process";
}

}  // namespace

Outcome<void> devicesCommand(const DevicesOptions& options) {
  std::vector<Device> list;
  std::vector<DeviceHost> hosts;
  try {
    list = devices();
    for (size_t i = 0; i < list.size(); ++i) hosts.push_back(deviceHost(i));
  } catch (const Exception& exception) {
    return std::unexpected(Failure(exception));
  }
  if (options.isJson) {
    using Json = nlohmann::ordered_json;
    Json json = {{"devices", Json::array()}};
    for (size_t i = 0; i < list.size(); ++i) {
      const Device& device = list[i];
      const DeviceHost& host = hosts[i];
      json["devices"].push_back({{"name", device.name},
                                 {"version", device.version},
                                 {"type", typeText(device.type)},
                                 {"feature_level", device.featureLevel},
                                 {"extensions", device.extensions},
                                 {"host",
                                  {{"kind", kindText(host.kind)},
                                   {"process", host.process},
                                   {"clients", host.clients},
                                   {"memory_bytes", host.memoryBytes},
                                   {"restarts", host.restarts}}}});
    }
    std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    return {};
  }
  TextTable table({"device", "type", "version", "feature level", "host", "process", "clients",
                   "memory", "restarts", "extensions"},
                  "lllrlrrrrl");
  for (size_t i = 0; i < list.size(); ++i) {
    const Device& device = list[i];
    const DeviceHost& host = hosts[i];
    const bool isHosted = host.kind != HEARTH_HOST_NONE;
    const auto count = [&](uint64_t number) {
      return isHosted ? std::to_string(number) : "";
    };
    table.add({printable(device.name), typeText(device.type), printable(device.version),
               std::to_string(device.featureLevel), kindText(host.kind),
               count(static_cast<uint64_t>(host.process)), count(host.clients),
               isHosted ? bytesText(host.memoryBytes) : "", count(host.restarts),
               printable(device.extensions)});
  }
  std::cout << table.toString();
  return {};
}

}  // namespace hearth::tools
