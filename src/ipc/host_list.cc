// SPDX-License-Identifier: Apache-2.0
#include "ipc/host_list.h"

#include <utility>
#include <vector>

#include "base/passed_variables.h"
#include "ipc/host_link.h"
#include "ipc/host_process.h"
#include "ipc/hosted_device.h"

namespace hearth::ipc {

namespace {

std::optional<HostPlace> parsePlace(std::string_view text) {
  constexpr std::string_view kProgram = "spawn:";
  if (text == "spawn") return HostPlace{HostPlace::Kind::kSpawn, ""};
  if (text.starts_with('/')) return HostPlace{HostPlace::Kind::kSocket, std::string(text)};
  if (text.starts_with(kProgram) && text.substr(kProgram.size()).starts_with('/'))
    return HostPlace{HostPlace::Kind::kSpawn, std::string(text.substr(kProgram.size()))};
  return std::nullopt;
}

HostOpener spawner(HostProgram program) {
  return [program = std::move(program)]() -> Result<HostConnection> {
    if (!program.program.empty()) return spawnHost(program);
    HostProgram own = program;
    HEARTH_ASSIGN(own.program, findHostProgram());
    return spawnHost(own);
  };
}

// `program` is what a host to spawn is told besides the device.
Result<std::shared_ptr<hal::Device>> hostedDevice(const HostPlace& place, const std::string& device,
                                                  HostProgram program) {
  if (place.kind == HostPlace::Kind::kSocket)
    return HostedDevice::create(device, [path = place.path] { return joinHost(path); });
  program.program = place.path;
  program.arguments.insert(program.arguments.begin(), {"--device", device});
  return HostedDevice::create(device, spawner(program),
                              [program](const std::vector<std::string>& files) {
                                HostProgram other = program;
                                for (const std::string& file : files) {
                                  other.arguments.emplace_back("--file");
                                  other.arguments.push_back(file);
                                }
                                return spawner(std::move(other));
                              });
}

}  // namespace

Result<std::map<std::string, HostPlace>> parseHostList(std::string_view text) {
  std::map<std::string, HostPlace> places;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view entry = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    const size_t equals = entry.find('=');
    const std::string name(entry.substr(0, equals));
    const auto place = parsePlace(equals == std::string_view::npos ? "" : entry.substr(equals + 1));
    if (name.empty() || !place)
      return fail(ErrorCode::kBadData,
                  "HEARTH_DRIVER_HOSTS has \"{}\", which is not DEVICE=spawn, "
                  "DEVICE=spawn:/PROGRAM or DEVICE=/SOCKET.",
                  entry);
    if (!places.emplace(name, *place).second)
      return fail(ErrorCode::kBadData, "HEARTH_DRIVER_HOSTS names the device {} twice.", name);
  }
  return places;
}

Result<std::shared_ptr<hal::Device>> deviceAt(const HostPlace& place, const std::string& device) {
  return hostedDevice(place, device, {});
}

Result<std::shared_ptr<hal::Device>> deviceAt(const HostPlace& place,
                                              const hal::DriverManifest& manifest) {
  HostProgram program;
  if (!manifest.library.empty() || manifest.delegate)
    program.arguments = {"--manifest", manifest.path};
  program.variables = base::passedVariables(manifest.needs.variables);
  return hostedDevice(place, manifest.name, std::move(program));
}

std::optional<HostPlace> placeOf(const hal::DriverManifest& manifest) {
  if (!manifest.socket.empty()) return HostPlace{HostPlace::Kind::kSocket, manifest.socket};
  if (manifest.host.empty()) return std::nullopt;
  return HostPlace{HostPlace::Kind::kSpawn, manifest.host == hal::kHearthHost ? "" : manifest.host};
}

}  // namespace hearth::ipc
