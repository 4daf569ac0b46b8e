// SPDX-License-Identifier: Apache-2.0
#include "runtime/delegate_library.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "base/env.h"
#include "hal/driver_manifest.h"
#include "runtime/device_manager.h"

namespace hearth::runtime {
namespace {

bool isSameLibrary(const std::string& hosted, const std::string& wanted) {
  if (!wanted.contains('/')) return std::filesystem::path(hosted).filename() == wanted;
  std::error_code error;
  return std::filesystem::equivalent(hosted, wanted, error);
}

}  // namespace

std::shared_ptr<hal::Device> deviceOfDelegateLibrary(const std::string& library) {
  std::vector<std::string> problems;  // told when the devices were found
  for (const std::string& path :
       hal::findDriverManifests(base::envString(base::Env::kDriverPath), &problems)) {
    const auto manifest = hal::readDriverManifest(path);
    if (!manifest || !manifest->delegate) continue;
    if (!isSameLibrary(manifest->delegate->library, library)) continue;
    if (auto device = DeviceManager::shared().find(manifest->name)) return device;
  }
  return nullptr;
}

}  // namespace hearth::runtime
