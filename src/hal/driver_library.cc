// SPDX-License-Identifier: Apache-2.0
#include "hal/driver_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

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

// Whether the library and the nodes of its devices are there.
bool isInstalled(const DriverManifest& manifest) {
  const auto exists = [](const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
  };
  const std::string& library = manifest.delegate ? manifest.delegate->library : manifest.library;
  return (library.empty() || exists(library)) &&
         std::ranges::all_of(manifest.needs.devices, exists);
}

}  // namespace

Result<std::shared_ptr<Device>> loadDriverLibrary(const std::string& path) {
  // The linker would look up a name without a slash in its own search path.
  const std::string file = path.contains('/') ? path : "./" + path;
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return fail(ErrorCode::kNotFound, "The library {} cannot be loaded: {}.", file,
                lastLoaderError());
  const auto create = reinterpret_cast<DriverCreateFunction>(::dlsym(library, kDriverCreateSymbol));
  if (create == nullptr)
    return fail(ErrorCode::kBadData, "The library {} does not export {}.{}", file,
                kDriverCreateSymbol,
                ::dlsym(library, kSupportLibrarySymbol) != nullptr
                    ? " It is a support library of NNAPI: add \"support_library\": true to the "
                      "manifest."
                    : "");
  char message[512] = "";
  std::shared_ptr<Device> device(create(kApiVersion, message, sizeof(message)));
  message[sizeof(message) - 1] = '\0';
  if (device == nullptr)
    return fail(ErrorCode::kUnavailableDevice, "The library {} makes no device: {}", file, message);
  return device;
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
  auto device = loadDriverLibrary(manifest.library);
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
                                  const DeviceMaker& make) {
  DiscoveredDrivers found;
  std::vector<std::string> names = takenNames;
  for (const std::string& path : findDriverManifests(searchPath, &found.problems)) {
    auto manifest = readDriverManifest(path);
    if (!manifest) {
      found.problems.push_back(manifest.error().toString());
      continue;
    }
    if (manifest->isOptional && !isInstalled(*manifest)) continue;
    if (std::find(names.begin(), names.end(), manifest->name) != names.end()) {
      found.problems.push_back(base::formatText(
          "The manifest {} names the device {}, which exists.", path, manifest->name));
      continue;
    }
    auto device = make(*manifest);
    if (!device) {
      found.problems.push_back(
          std::move(device.error()).addContext("while loading " + path).toString());
      continue;
    }
    names.push_back(manifest->name);
    found.devices.push_back(std::move(*device));
  }
  for (const std::string& problem : found.problems)
    base::logWarn("A driver is left out. {}", problem);
  return found;
}

DiscoveredDrivers discoverDrivers(const std::vector<std::string>& takenNames,
                                  const DeviceMaker& make) {
  return discoverDrivers(base::envString(base::Env::kDriverPath), takenNames, make);
}

}  // namespace hearth::hal
