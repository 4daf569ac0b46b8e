// SPDX-License-Identifier: Apache-2.0
#include "ipc/host_list.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/passed_variables.h"
#include "ipc/host_link.h"
#include "ipc/host_process.h"
#include "ipc/hosted_device.h"
#include "ipc/user_host.h"

namespace hearth::ipc {

namespace {

std::optional<HostPlace> parsePlace(std::string_view text) {
  constexpr std::string_view kProgram = "spawn:";
  if (text == "process") return HostPlace{HostPlace::Kind::kProcess, ""};
  if (text == "shared") return HostPlace{HostPlace::Kind::kShared, ""};
  if (text == "spawn") return HostPlace{HostPlace::Kind::kSpawn, ""};
  if (text.starts_with('/')) return HostPlace{HostPlace::Kind::kSocket, std::string(text)};
  if (text.starts_with(kProgram) && text.substr(kProgram.size()).starts_with('/'))
    return HostPlace{HostPlace::Kind::kSpawn, std::string(text.substr(kProgram.size()))};
  return std::nullopt;
}

// With the path of the program, which is that of the command hearth where there is none.
Result<HostProgram> withPath(HostProgram program) {
  if (program.program.empty()) {
    HEARTH_ASSIGN(program.program, findHostProgram());
  }
  return program;
}

HostOpener spawner(HostProgram program) {
  return [program = std::move(program)]() -> Result<HostConnection> {
    HEARTH_ASSIGN(const HostProgram own, withPath(program));
    return spawnHost(own);
  };
}

// Opens hosts of this process that may use more files.
HostMaker makerOf(HostProgram program) {
  return [program = std::move(program)](const std::vector<std::string>& files) {
    HostProgram other = program;
    for (const std::string& file : files) {
      other.arguments.emplace_back("--file");
      other.arguments.push_back(file);
    }
    return spawner(std::move(other));
  };
}

// The socket of the host that the user's programs share, and its program.
Result<std::pair<std::string, HostProgram>> userHostOf(const std::string& device,
                                                       const HostProgram& program) {
  HEARTH_ASSIGN(const std::string folder, userHostFolder());
  HEARTH_ASSIGN(HostProgram own, withPath(program));
  own.program = std::filesystem::absolute(own.program).string();
  std::string socket = userHostSocket(folder, device, own);
  return std::pair(std::move(socket), std::move(own));
}

// Joins the host that the user's programs share. Where they cannot have one, it opens a host of
// this process.
HostOpener sharer(std::string device, HostProgram program) {
  return [device = std::move(device), program = std::move(program)]() -> Result<HostConnection> {
    auto joined = [&]() -> Result<HostConnection> {
      HEARTH_ASSIGN(const auto host, userHostOf(device, program));
      return joinUserHost(host.first, host.second);
    }();
    if (joined) return joined;
    base::logInfo("The host of the device {} is not shared. {}", device, joined.error().toString());
    return spawner(program)();
  };
}

// Whether the host may be one that another program would get along with, but this one does not: it
// has too many clients, speaks another version, does not answer, or has just ended.
bool isForOthers(const Error& error) {
  return error.code() == ErrorCode::kResourceExhaustedTransient ||
         error.code() == ErrorCode::kUnsupported || error.code() == ErrorCode::kDeadObject;
}

Result<std::shared_ptr<HostedDevice>> sharedDevice(const std::string& device,
                                                   const HostProgram& program) {
  auto shared = HostedDevice::create(device, sharer(device, program), makerOf(program));
  if (shared || !isForOthers(shared.error())) return shared;
  if (shared.error().code() == ErrorCode::kDeadObject)
    if (const auto host = userHostOf(device, program)) forgetUserHost(host->first);
  base::logWarn("The host of the device {} that the user's programs share is not used. {}", device,
                shared.error().toString());
  return HostedDevice::create(device, spawner(program), makerOf(program));
}

// `program` is what a host to start is told besides the device.
Result<std::shared_ptr<HostedDevice>> hostedDevice(const HostPlace& place,
                                                   const std::string& device, HostProgram program) {
  if (place.kind == HostPlace::Kind::kSocket)
    return HostedDevice::create(device, [path = place.path] { return joinHost(path); });
  program.program = place.path;
  program.arguments.insert(program.arguments.begin(), {"--device", device});
  if (place.kind == HostPlace::Kind::kShared) return sharedDevice(device, program);
  return HostedDevice::create(device, spawner(program), makerOf(program));
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
                  "DEVICE=spawn:/PROGRAM, DEVICE=shared, DEVICE=process or DEVICE=/SOCKET.",
                  entry);
    if (!places.emplace(name, *place).second)
      return fail(ErrorCode::kBadData, "HEARTH_DRIVER_HOSTS names the device {} twice.", name);
  }
  return places;
}

Result<std::shared_ptr<HostedDevice>> deviceAt(const HostPlace& place, const std::string& device) {
  return hostedDevice(place, device, {});
}

Result<std::shared_ptr<HostedDevice>> deviceAt(const HostPlace& place,
                                               const hal::DriverManifest& manifest) {
  HostProgram program;
  if (!manifest.library.empty() || manifest.delegate) {
    // Programs that share a host need not be in the same folder.
    std::error_code error;
    const std::string path = std::filesystem::absolute(manifest.path, error).string();
    program.arguments = {"--manifest", error ? manifest.path : path};
    program.identity = {manifest.path,
                        manifest.delegate ? manifest.delegate->library : manifest.library};
  }
  program.variables = base::passedVariables(manifest.needs.variables);
  return hostedDevice(place, manifest.name, std::move(program));
}

std::optional<HostPlace> placeOf(const hal::DriverManifest& manifest) {
  if (!manifest.socket.empty()) return HostPlace{HostPlace::Kind::kSocket, manifest.socket};
  if (manifest.host.empty()) return std::nullopt;
  const bool isCommand = manifest.host == hal::kHearthHost;
  if (!manifest.isShared) return HostPlace{HostPlace::Kind::kSpawn, isCommand ? "" : manifest.host};
  const bool isForProcesses = !manifest.library.empty() && !manifest.isSupportLibrary;
  if (isForProcesses && isCommand && !findHostProgram()) return std::nullopt;
  return HostPlace{HostPlace::Kind::kShared, isCommand ? "" : manifest.host};
}

}  // namespace hearth::ipc
