// SPDX-License-Identifier: Apache-2.0
#include "tools/host_sandbox.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/env.h"
#include "base/log.h"
#include "cache/compilation/mapping_manager.h"
#include "cache/store/store_options.h"
#include "ipc/sandbox.h"

namespace hearth::tools {
namespace {

// The folder itself, or else the nearest one above it that exists, so that the folder can be made:
// Landlock knows files that exist. For a file that does not exist or is replaced when it changes,
// the folder that it is in. Empty where that is the root.
std::string existingFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::absolute(path, error);
  while (folder.has_relative_path() && !std::filesystem::is_directory(folder, error))
    folder = folder.parent_path();
  return folder.has_relative_path() ? folder.string() : "";
}

void addFolder(const std::string& path, std::vector<std::string>* folders) {
  if (path.empty()) return;
  if (std::string folder = existingFolder(path); !folder.empty())
    folders->push_back(std::move(folder));
  else
    base::logWarn("The host may not use {}, since no folder above it exists.", path);
}

ipc::FileRules fileRules(const ServeOptions& options, const hal::DriverManifest& manifest) {
  ipc::FileRules rules;
  rules.readOnly = ipc::systemFilesToRead();
  // Wrong variables are an error of the driver's when it opens the store.
  if (const auto store = cache::StoreOptions::fromEnvironment()) {
    addFolder(store->path, &rules.readWrite);
    for (const std::string& path : store->systemStores)
      if (std::error_code error; std::filesystem::is_directory(path, error))
        rules.readOnly.push_back(path);
  }
  addFolder(cache::MappingManager::standardFolder(), &rules.readWrite);
  if (const std::string trace = base::envString(base::Env::kTrace); !trace.empty())
    addFolder(std::filesystem::path(trace).parent_path().string(), &rules.readWrite);
  for (const std::string& path : options.files) addFolder(path, &rules.readWrite);
  const auto append = [](const std::vector<std::string>& from, std::vector<std::string>* to) {
    to->insert(to->end(), from.begin(), from.end());
  };
  append(manifest.needs.readWrite, &rules.readWrite);
  append(manifest.needs.readOnly, &rules.readOnly);
  append(manifest.needs.devices, &rules.devices);
  const auto appendPresent = [&](const std::vector<std::string>& from,
                                 std::vector<std::string>* to) {
    for (const std::string& path : from) append(hal::presentPaths(path), to);
  };
  appendPresent(manifest.needs.ifPresent.readWrite, &rules.readWrite);
  appendPresent(manifest.needs.ifPresent.readOnly, &rules.readOnly);
  appendPresent(manifest.needs.ifPresent.devices, &rules.devices);
  return rules;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// Their run-time libraries start processes and trace them.
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

}  // namespace

Status confineHost(const ServeOptions& options, const hal::DriverManifest& manifest) {
  HEARTH_ASSIGN(const ipc::SandboxMode mode, ipc::parseSandboxMode(options.sandbox));
  if (kIsSanitized && mode == ipc::SandboxMode::kOn) return {};
  ipc::SandboxRules rules{.mode = mode,
                          .files = fileRules(options, manifest),
                          .acceptsConnections = options.isForMany,
                          .loadsCode = manifest.needs.code};
  rules.limits.writableMemory = options.memory;
  HEARTH_ASSIGN(const ipc::SandboxState state, ipc::enterSandbox(rules));
  for (const std::string& gap : state.gaps) base::logInfo("The sandbox of the host: {}", gap);
  return {};
}

}  // namespace hearth::tools
