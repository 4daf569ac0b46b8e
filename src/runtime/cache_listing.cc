// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "base/descriptor.h"
#include "base/format.h"
#include "cache/compilation/cache_inspection.h"
#include "hal/cache_explainer.h"
#include "runtime/cache_explanation.h"
#include "runtime/cache_file_state.h"

namespace hearth::runtime {
namespace {

struct CloseFolder {
  void operator()(DIR* stream) const { ::closedir(stream); }
};

Result<std::vector<std::string>> namesIn(const std::string& folder) {
  const std::unique_ptr<DIR, CloseFolder> stream(::opendir(folder.c_str()));
  if (stream == nullptr)
    return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                "The cache folder {} cannot be read: {}.", folder, std::strerror(errno));
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(stream.get()))
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
      names.emplace_back(entry->d_name);
  std::ranges::sort(names);
  return names;
}

// Device names by the build identity in their cache files.
using Builds = std::map<base::Sha256Digest, std::string>;

Builds buildsOf(const std::vector<std::shared_ptr<hal::Device>>& devices) {
  Builds builds;
  for (const auto& device : devices)
    if (const auto* const explainer = dynamic_cast<const hal::CacheExplainer*>(device.get()))
      if (const auto build = explainer->cacheBuild()) builds.try_emplace(*build, device->name());
  return builds;
}

base::Descriptor openToRead(const std::string& path) {
  return base::Descriptor(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
}

// Fills in what the map knows of the set. Our drivers write one file of each kind.
void inspect(const std::string& folder, const hal::CacheToken& key, const Builds& builds,
             cache::MappingManager& map, CacheSet* set) {
  const auto isFirst = [](const CacheFileState& file) {
    return file.index == 0;
  };
  if (!std::ranges::all_of(set->files, isFirst)) {
    set->code = "not-told";
    set->reason = "No driver here has so many cache files.";
    return;
  }
  if (set->files.size() != 2) {
    set->code = "incomplete";
    set->reason = "The model cache or the data cache is missing.";
    return;
  }
  const base::Descriptor model = openToRead(cacheFileName(folder, key, CacheFileKind::kModel, 0));
  const base::Descriptor data = openToRead(cacheFileName(folder, key, CacheFileKind::kData, 0));
  if (!model.valid() || !data.valid()) {
    set->code = cache::cacheFindingName(cache::CacheFinding::kUnreadable);
    set->reason = base::formatText("A cache file cannot be opened: {}.", std::strerror(errno));
    return;
  }
  const base::Sha256Digest preferred =
      builds.empty() ? base::Sha256Digest{} : builds.begin()->first;
  cache::CacheInspection found =
      cache::inspectCacheFiles(map, key, preferred, model.get(), data.get());
  set->isVerified = found.finding == cache::CacheFinding::kVerified;
  set->code = cache::cacheFindingName(found.finding);
  set->reason = std::move(found.reason);
  if (!found.known) return;
  set->build = base::toHex(found.known->owner.build);
  set->user = found.known->owner.uid;
  set->used = found.known->used;
  if (const auto build = builds.find(found.known->owner.build); build != builds.end())
    set->device = build->second;
}

int64_t lastModified(const CacheSet& set) {
  return std::ranges::max(set.files, {}, &CacheFileState::modified).modified;
}

}  // namespace

Result<CacheListing> listCacheFolder(const std::string& folder,
                                     const std::vector<std::shared_ptr<hal::Device>>& devices) {
  HEARTH_ASSIGN(const std::vector<std::string> names, namesIn(folder));
  CacheListing listing;
  std::map<hal::CacheToken, CacheSet> sets;
  for (const std::string& name : names) {
    const std::optional<CacheFileName> parsed = parseCacheFileName(name);
    CacheFileState file;
    if (parsed) file = stateOfCacheFile(folder, parsed->key, parsed->kind, parsed->index);
    if (file.exists)
      sets[parsed->key].files.push_back(std::move(file));
    else
      listing.others.push_back(name);
  }
  const Builds builds = buildsOf(devices);
  const std::unique_ptr<cache::MappingManager> map = cache::MappingManager::forLooking();
  for (auto& [key, set] : sets) {
    set.key = cacheKeyLetters(key);
    inspect(folder, key, builds, *map, &set);
    listing.sets.push_back(std::move(set));
  }
  std::ranges::stable_sort(listing.sets, std::ranges::greater(), lastModified);
  return listing;
}

}  // namespace hearth::runtime
