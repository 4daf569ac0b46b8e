// SPDX-License-Identifier: Apache-2.0
// `hearth devices`.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/env.h"
#include "base/format.h"
#include "hal/driver_library.h"
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

struct LeftOutDriver {
  hal::DriverManifest manifest;
  std::string reason;
};

// The drivers that the library has left out without a message, since it may. They are asked again
// for the reason, which clients of the library have no other way to learn.
std::vector<LeftOutDriver> leftOutDrivers(const std::vector<Device>& list) {
  std::vector<LeftOutDriver> found;
  std::vector<std::string> problems;  // the library has told
  for (const std::string& path :
       hal::findDriverManifests(base::envString(base::Env::kDriverPath), &problems)) {
    auto manifest = hal::readDriverManifest(path);
    if (!manifest || !hal::mayBeLeftOut(*manifest) ||
        std::ranges::contains(list, manifest->name, &Device::name))
      continue;
    std::optional<std::string> reason = hal::whatIsMissing(*manifest);
    if (!reason && (manifest->host.empty() || manifest->isShared))
      if (const auto device = hal::loadDriver(*manifest); !device)
        reason = device.error().message();
    if (reason) found.push_back({*std::move(manifest), *std::move(reason)});
  }
  return found;
}

bool isMeasured(const DeviceSpeed& speed) {
  return speed.execution != 0;
}

// Null for a device that has not been measured, and for a kind of numbers that has not.
nlohmann::ordered_json speedJson(const DeviceSpeed& speed) {
  if (!isMeasured(speed)) return nullptr;
  const auto known = [](double product) -> nlohmann::ordered_json {
    if (product == 0) return nullptr;
    return product;
  };
  return {{"execution_s", speed.execution},
          {"operation_s", speed.operation},
          {"argument_byte_s", speed.argumentByte},
          {"moved_byte_s", speed.movedByte},
          {"float32_product_s", known(speed.float32Product)},
          {"float16_product_s", known(speed.float16Product)},
          {"quantized_product_s", known(speed.quantizedProduct)}};
}

// Throws Exception. Returns whether there is a device to measure.
bool measureDevices(size_t count) {
  bool isAny = false;
  for (size_t i = 0; i < count; ++i) {
    try {
      measureDevice(i);
      isAny = true;
    } catch (const Exception& exception) {
      if (exception.code() != HEARTH_UNSUPPORTED) throw;
    }
  }
  return isAny;
}

std::string speedTable(const std::vector<Device>& list, const std::vector<DeviceSpeed>& speeds) {
  constexpr double kMicro = 1e6;
  constexpr double kGiga = 1e-9;
  const auto rate = [](double seconds) {
    return seconds == 0 ? "" : base::formatText("{:.3g}", kGiga / seconds);
  };
  TextTable table({"measured", "us/execution", "us/operation", "GB/s in and out", "GB/s within",
                   "float32 G/s", "float16 G/s", "8-bit G/s"},
                  "lrrrrrrr");
  for (size_t i = 0; i < list.size(); ++i)
    if (const DeviceSpeed& speed = speeds[i]; isMeasured(speed))
      table.add({printable(list[i].name), base::formatText("{:.3g}", kMicro * speed.execution),
                 base::formatText("{:.3g}", kMicro * speed.operation), rate(speed.argumentByte),
                 rate(speed.movedByte), rate(speed.float32Product), rate(speed.float16Product),
                 rate(speed.quantizedProduct)});
  return table.toString();
}

}  // namespace

Outcome<void> devicesCommand(const DevicesOptions& options) {
  std::vector<Device> list;
  std::vector<DeviceHost> hosts;
  std::vector<DeviceSpeed> speeds;
  try {
    list = devices();
    if (options.measures && !measureDevices(list.size()))
      return std::unexpected(
          Failure(kExitFailure, "There is no device whose driver wants it measured."));
    for (size_t i = 0; i < list.size(); ++i) {
      hosts.push_back(deviceHost(i));
      speeds.push_back(deviceSpeed(i));
    }
  } catch (const Exception& exception) {
    return std::unexpected(Failure(exception));
  }
  const std::vector<LeftOutDriver> leftOut = leftOutDrivers(list);
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
                                   {"restarts", host.restarts}}},
                                 {"speed", speedJson(speeds[i])}});
    }
    json["left_out"] = Json::array();
    for (const LeftOutDriver& driver : leftOut)
      json["left_out"].push_back({{"name", driver.manifest.name},
                                  {"manifest", driver.manifest.path},
                                  {"reason", driver.reason}});
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
  if (std::ranges::any_of(speeds, isMeasured)) std::cout << "\n" << speedTable(list, speeds);
  if (!leftOut.empty()) std::cout << "\n";
  for (const LeftOutDriver& driver : leftOut)
    std::cout << printable(driver.manifest.name) << " is left out: " << printable(driver.reason)
              << "\n";
  return {};
}

}  // namespace hearth::tools
