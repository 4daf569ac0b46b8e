// SPDX-License-Identifier: Apache-2.0
#include "hal/driver_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/env.h"
#include "base/format.h"
#include "base/log.h"
#include "hal/driver_entry.h"

namespace hearth::hal {
namespace {

std::string lastLoaderError() {
  const char* text = ::dlerror();
  return text != nullptr ? text : "the loader says nothing";
}

// The linker would look up a name without a slash in its own search path.
std::string fileOf(const std::string& path) {
  return path.contains('/') ? path : "./" + path;
}

}  // namespace

bool mayBeLeftOut(const DriverManifest& manifest) {
  if (!manifest.isOptional) return false;
  const auto variables = base::environmentVariables();
  const auto asking = std::ranges::find(variables, manifest.askedForBy, &base::EnvVariable::name);
  return asking == variables.end() || base::envString(asking->id) == asking->standard;
}

std::optional<std::string> whatIsMissing(const DriverManifest& manifest) {
  const auto isMissing = [](const std::string& path) {
    return ::access(path.c_str(), F_OK) != 0;
  };
  const std::string& library = manifest.delegate ? manifest.delegate->library : manifest.library;
  if (!library.empty() && isMissing(library))
    return base::formatText("The library {} is not installed.", library);
  const std::vector<std::string>& all = manifest.needs.devices;
  if (const auto lacking = std::ranges::find_if(all, isMissing); lacking != all.end())
    return base::formatText("There is no {}.", *lacking);
  const std::vector<std::string>& some = manifest.needs.ifPresent.devices;
  const auto isPresent = [](const std::string& path) {
    return !presentPaths(path).empty();
  };
  if (some.empty() || std::ranges::any_of(some, isPresent)) return std::nullopt;
  std::string names = some.front();
  for (size_t i = 1; i < some.size(); ++i) names += (i + 1 < some.size() ? ", " : " or ") + some[i];
  return base::formatText("There is no {}.", names);
}

Result<std::shared_ptr<Device>> loadDriverLibrary(const std::string& path, uint32_t number) {
  const std::string file = fileOf(path);
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return fail(ErrorCode::kNotFound, "The library {} cannot be loaded: {}.", file,
                lastLoaderError());
  const char* const symbol = number == 1 ? kDriverCreateSymbol : kDriverCreateNumberedSymbol;
  void* const create = ::dlsym(library, symbol);
  if (create == nullptr)
    return fail(ErrorCode::kBadData, "The library {} does not export {}.{}", file, symbol,
                ::dlsym(library, kSupportLibrarySymbol) != nullptr
                    ? " It is a support library of NNAPI: add \"support_library\": true to the "
                      "manifest."
                    : "");
  char message[512] = "";
  std::shared_ptr<Device> device(
      number == 1
          ? reinterpret_cast<DriverCreateFunction>(create)(kApiVersion, message, sizeof message)
          : reinterpret_cast<DriverCreateNumberedFunction>(create)(kApiVersion, number, message,
                                                                   sizeof message));
  message[sizeof(message) - 1] = '\0';
  if (device == nullptr)
    return fail(ErrorCode::kUnavailableDevice, "The library {} makes no device: {}", file, message);
  return device;
}

uint32_t countOfDevices(const DriverManifest& manifest) {
  if (!manifest.isNumbered) return 1;
  void* const library =
      ::dlopen(fileOf(manifest.library).c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) return 1;
  void* const count = ::dlsym(library, kDriverCountSymbol);
  const uint32_t devices = count != nullptr ? reinterpret_cast<DriverCountFunction>(count)() : 1;
  // Undoes this dlopen() only.
  ::dlclose(library);
  return std::clamp(devices, 1u, kMostNumbered);
}

Result<std::shared_ptr<Device>> loadDriver(const DriverManifest& manifest) {
  if (manifest.isSupportLibrary)
    return fail(ErrorCode::kUnsupported,
                "The driver {} is a support library of NNAPI, which only a host loads.",
                manifest.name);
  if (manifest.apiVersion != kApiVersion)
    return fail(ErrorCode::kUnsupported,
                "The driver {} is built for version {} of the driver interface, this is {}.",
                manifest.name, manifest.apiVersion, kApiVersion);
  if (manifest.library.empty())
    return fail(ErrorCode::kUnsupported, "The manifest of the driver {} names no library.",
                manifest.name);
  auto device = loadDriverLibrary(manifest.library, manifest.number);
  if (!device)
    return std::unexpected(
        std::move(device.error())
            .addContext(base::formatText("while loading the driver {}", manifest.name)));
  if ((*device)->name() != manifest.name)
    return fail(ErrorCode::kBadData, "The driver {} makes a device of the name {}.", manifest.name,
                (*device)->name());
  return device;
}

DiscoveredDrivers discoverDrivers(std::string_view searchPath,
                                  const std::vector<std::string>& takenNames,
                                  const DeviceMaker& make,
                                  const std::vector<std::string>& wantedNames) {
  DiscoveredDrivers found;
  std::vector<std::string> names = takenNames;
  std::map<std::string, std::filesystem::path> folders;  // of the devices that are found
  // Whether there is such a device.
  const auto add = [&](const DriverManifest& manifest) {
    const std::filesystem::path folder = std::filesystem::path(manifest.path).parent_path();
    if (const auto it = folders.find(manifest.name); it != folders.end() && it->second != folder) {
      base::logDebug("The manifest {} is not used: {} has another one of {}.", manifest.path,
                     it->second.string(), manifest.name);
      // Where the first device is that of another manifest, so are further ones.
      return manifest.number > 1;
    }
    const bool isOptional =
        mayBeLeftOut(manifest) && !std::ranges::contains(wantedNames, manifest.name);
    const auto leaveOut = [&](std::string reason) {
      // Nobody expects a further device.
      if (manifest.number == 1) found.leftOut.push_back({manifest.name, std::move(reason)});
      return false;
    };
    // A further device needs what the first one has found.
    if (isOptional && manifest.number == 1)
      if (auto reason = whatIsMissing(manifest)) return leaveOut(*std::move(reason));
    if (std::find(names.begin(), names.end(), manifest.name) != names.end()) {
      found.problems.push_back(base::formatText(
          "The manifest {} names the device {}, which exists.", manifest.path, manifest.name));
      return true;
    }
    auto device = make(manifest);
    if (!device && isOptional && device.error().code() == ErrorCode::kUnavailableDevice)
      return leaveOut(device.error().message());
    if (!device) {
      found.problems.push_back(
          std::move(device.error()).addContext("while loading " + manifest.path).toString());
      return false;
    }
    names.push_back(manifest.name);
    folders.emplace(manifest.name, folder);
    found.devices.push_back(std::move(*device));
    return true;
  };
  for (const std::string& path : findDriverManifests(searchPath, &found.problems)) {
    auto manifest = readDriverManifest(path);
    if (!manifest) {
      found.problems.push_back(manifest.error().toString());
      continue;
    }
    bool goesOn = add(*manifest) && manifest->isNumbered;
    for (uint32_t number = 2; number <= kMostNumbered && manifest->isNumbered; ++number) {
      const DriverManifest further = numberedManifest(*manifest, number);
      if (goesOn || std::ranges::contains(wantedNames, further.name)) goesOn = add(further);
    }
  }
  for (const std::string& problem : found.problems)
    base::logWarn("A driver is left out. {}", problem);
  for (const LeftOutDriver& driver : found.leftOut)
    base::logInfo("The optional driver of {} is left out. {}", driver.name, driver.reason);
  return found;
}

DiscoveredDrivers discoverDrivers(const std::vector<std::string>& takenNames,
                                  const DeviceMaker& make,
                                  const std::vector<std::string>& wantedNames) {
  return discoverDrivers(base::envString(base::Env::kDriverPath), takenNames, make, wantedNames);
}

}  // namespace hearth::hal
