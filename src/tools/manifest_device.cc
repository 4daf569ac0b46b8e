// SPDX-License-Identifier: Apache-2.0
#include "tools/manifest_device.h"

#include <cstdlib>
#include <utility>

#include "base/env.h"
#include "drivers/delegate/delegate_device.h"
#include "drivers/support_library/library_device.h"
#include "hal/driver_library.h"

namespace hearth::tools {
namespace {

// A library may be a runtime itself. It finds no other drivers, and its starts are not the
// client's.
void forgetClient() {
  for (const base::Env variable :
       {base::Env::kDriverPath, base::Env::kDriverHosts, base::Env::kReport})
    ::unsetenv(base::environmentVariable(variable).name);
}

Result<std::shared_ptr<hal::Device>> loadSupportLibrary(const hal::DriverManifest& manifest) {
  forgetClient();
  HEARTH_ASSIGN(auto library, drivers::support_library::SupportLibrary::load(manifest.library));
  return drivers::support_library::createDevice(std::move(library), manifest.name, manifest.device);
}

Result<std::shared_ptr<hal::Device>> loadDelegate(const hal::DriverManifest& manifest) {
  HEARTH_ASSIGN(drivers::delegate::DeviceSettings settings,
                drivers::delegate::settingsOf(manifest));
  forgetClient();
  for (const auto& [name, value] : manifest.delegate->variables)
    ::setenv(name.c_str(), value.c_str(), 1);
  return drivers::delegate::createDevice(std::move(settings));
}

}  // namespace

Result<std::shared_ptr<hal::Device>> deviceOfManifest(const hal::DriverManifest& manifest) {
  if (manifest.isSupportLibrary) return loadSupportLibrary(manifest);
  if (manifest.delegate) return loadDelegate(manifest);
  return hal::loadDriver(manifest);
}

}  // namespace hearth::tools
