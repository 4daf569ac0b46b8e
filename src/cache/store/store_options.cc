// SPDX-License-Identifier: Apache-2.0
#include "cache/store/store_options.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/env.h"
#include "cache/store/user_folder.h"

namespace hearth::cache {
namespace {

std::string standardPath() {
  return userFolder(base::Env::kCacheHome, ".cache", "hearth/store");
}

constexpr std::pair<std::string_view, StoreMode> kModes[] = {
    {"off", StoreMode::kOff},
    {"read-only", StoreMode::kReadOnly},
    {"read-write", StoreMode::kReadWrite},
    {"strict", StoreMode::kStrict},
};

std::optional<StoreMode> modeOf(std::string_view word) {
  for (const auto& [name, mode] : kModes)
    if (name == word) return mode;
  return std::nullopt;
}

std::string_view nameOf(StoreMode mode) {
  for (const auto& [name, other] : kModes)
    if (other == mode) return name;
  return "";
}

std::vector<std::string> splitFolders(std::string_view folders) {
  std::vector<std::string> split;
  for (size_t begin = 0; begin < folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    if (end > begin) split.emplace_back(folders.substr(begin, end - begin));
    begin = end + 1;
  }
  return split;
}

constexpr char kPath[] = "store";
constexpr char kMode[] = "store_mode";
constexpr char kBytes[] = "store_bytes";
constexpr char kBundle[] = "bundle";
constexpr char kSystemStores[] = "system_stores";

}  // namespace

StoreResult<StoreOptions> StoreOptions::fromEnvironment() {
  StoreOptions options;
  const Result<std::string> mode = base::envChoice(base::Env::kStoreMode);
  if (!mode) return storeFail(StoreReason::kBadRequest, "{}", mode.error().toString());
  options.mode = modeOf(*mode).value_or(StoreMode::kReadWrite);
  const Result<uint64_t> size = base::envBytes(base::Env::kStoreSize);
  if (!size) return storeFail(StoreReason::kBadRequest, "{}", size.error().toString());
  options.maxBytes = *size;
  options.systemStores = splitFolders(base::envString(base::Env::kSystemStores));
  options.path = base::envString(base::Env::kStore);
  if (options.path.empty()) options.path = standardPath();
  if (options.path.empty() && options.systemStores.empty())
    return storeFail(StoreReason::kNoHome,
                     "HEARTH_STORE, XDG_CACHE_HOME and HOME name no folder for the store.");
  return options;
}

std::map<std::string, std::string> StoreOptions::toTexts() const {
  std::string folders;
  for (const std::string& folder : systemStores) folders += (folders.empty() ? "" : ":") + folder;
  return {{kPath, path},
          {kMode, std::string(nameOf(mode))},
          {kBytes, std::to_string(maxBytes)},
          {kBundle, bundle},
          {kSystemStores, folders}};
}

StoreResult<StoreOptions> StoreOptions::fromTexts(const std::map<std::string, std::string>& texts) {
  const auto find = [&](const char* name) {
    const auto found = texts.find(name);
    return found == texts.end() ? nullptr : &found->second;
  };
  const std::string* const path = find(kPath);
  const std::string* const mode = find(kMode);
  const std::string* const bytes = find(kBytes);
  const std::string* const bundle = find(kBundle);
  const std::string* const folders = find(kSystemStores);
  const bool isAnyThere = path != nullptr || mode != nullptr || bytes != nullptr ||
                          bundle != nullptr || folders != nullptr;
  StoreResult<StoreOptions> found = fromEnvironment();
  if (!isAnyThere) return found;
  StoreOptions options = std::move(found).value_or(StoreOptions());
  if (path != nullptr) options.path = *path;
  if (bundle != nullptr) options.bundle = *bundle;
  if (folders != nullptr) options.systemStores = splitFolders(*folders);
  if (mode != nullptr) {
    const std::optional<StoreMode> known = modeOf(*mode);
    if (!known) return storeFail(StoreReason::kBadRequest, "\"{}\" is no mode of a store.", *mode);
    options.mode = *known;
  }
  if (bytes != nullptr) {
    const char* const end = bytes->data() + bytes->size();
    const auto [stop, error] = std::from_chars(bytes->data(), end, options.maxBytes);
    if (error != std::errc() || stop != end)
      return storeFail(StoreReason::kBadRequest, "\"{}\" is no size of a store in bytes.", *bytes);
  }
  return options;
}

}  // namespace hearth::cache
