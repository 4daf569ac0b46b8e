// SPDX-License-Identifier: Apache-2.0
#include "runtime/compilation_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/caught.h"
#include "base/fault.h"
#include "base/format.h"
#include "base/log.h"
#include "base/trace.h"
#include "hal/request_check.h"

namespace hearth::runtime {
namespace {

Result<base::Descriptor> openFile(const std::string& path, bool create) {
  // A link in the client's folder must not create or change a file elsewhere, and a FIFO must not
  // block the compilation.
  const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  base::Descriptor file;
  do {
    file.reset(base::sys::open(path.c_str(), create ? flags | O_CREAT : flags, 0600));
  } while (!file.valid() && errno == EINTR);
  if (!file.valid())
    return fail(ErrorCode::kIo, "The cache file {} cannot be opened: {}.", path,
                std::strerror(errno));
  struct stat status;
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return fail(ErrorCode::kIo, "The cache file {} is no regular file.", path);
  // The driver may write the file: another user may have put it there, or linked one of this user's
  // files.
  if ((status.st_uid != ::geteuid() && status.st_uid != 0) || status.st_nlink > 1)
    return fail(ErrorCode::kIo, "The cache file {} belongs to somebody else or has other names.",
                path);
  return file;
}

Result<std::vector<base::Descriptor>> openFiles(const std::string& folder,
                                                const hal::CacheToken& key, CacheFileKind kind,
                                                uint32_t count, bool create) {
  std::vector<base::Descriptor> files;
  for (uint32_t i = 0; i < count; ++i) {
    HEARTH_ASSIGN(base::Descriptor file, openFile(cacheFileName(folder, key, kind, i), create));
    files.push_back(std::move(file));
  }
  return files;
}

Result<std::vector<base::Descriptor>> duplicates(const std::vector<base::Descriptor>& files,
                                                 uint32_t count) {
  if (files.size() != count)
    return fail(ErrorCode::kBadData, "There are {} cache files of a kind; the device wants {}.",
                files.size(), count);
  std::vector<base::Descriptor> copies;
  for (const base::Descriptor& file : files) {
    HEARTH_ASSIGN(base::Descriptor copy, file.duplicate());
    copies.push_back(std::move(copy));
  }
  return copies;
}

Result<std::shared_ptr<hal::PreparedModel>> prepareFromFiles(hal::Device& device,
                                                             const hal::PrepareOptions& options,
                                                             const CacheRequest& request,
                                                             const hal::CacheToken& key,
                                                             const hal::CacheFileCounts& counts) {
  const base::TraceSpan span("runtime", "prepare from cache");
  HEARTH_ASSIGN(hal::Cache cache, openCache(request, key, counts, false));
  HEARTH_ASSIGN(auto prepared, base::caught([&] {
                  return device.prepareModelFromCache(options, std::move(cache));
                }));
  if (prepared == nullptr)
    return fail(ErrorCode::kOpFailed, "The device {} gives no model.", device.name());
  return prepared;
}

// What was kept of a model that had lost pages is of no use.
void emptyFiles(const CacheRequest& request, const hal::CacheToken& key,
                const hal::CacheFileCounts& counts) {
  const auto cache = openCache(request, key, counts, false);
  if (!cache) return;
  for (const auto* const files : {&cache->modelFiles, &cache->dataFiles})
    for (const base::Descriptor& file : *files)
      if (::ftruncate(file.get(), 0) != 0)
        base::logWarn("A cache file of a model that lost pages stays: {}.", std::strerror(errno));
}

}  // namespace

void CacheKeyHash::addOperation(uint32_t model, uint32_t operation) {
  hash_.update(&model, sizeof model);
  const auto index = static_cast<int32_t>(operation);
  hash_.update(&index, sizeof index);
}

hal::CacheToken CacheKeyHash::finish(const hal::Device& device,
                                     const hal::PrepareOptions& options) {
  const std::string name = device.name();
  const std::string version = device.version();
  const auto preference = static_cast<int32_t>(options.preference);
  const auto priority = static_cast<int32_t>(options.priority);
  hash_.update(name.data(), name.size());
  hash_.update(version.data(), version.size());
  hash_.update(&preference, sizeof preference);
  hash_.update(&priority, sizeof priority);
  return hash_.finish();
}

std::string cacheFileName(const std::string& folder, const hal::CacheToken& key, CacheFileKind kind,
                          uint32_t index) {
  std::string name = folder;
  if (!name.ends_with('/')) name += '/';
  for (const uint8_t byte : key) {
    name += static_cast<char>('A' + (byte & 15));
    name += static_cast<char>('A' + (byte >> 4));
  }
  name += static_cast<char>(kind);
  return name + std::to_string(index);
}

Result<hal::Cache> openCache(const CacheRequest& request, const hal::CacheToken& key,
                             const hal::CacheFileCounts& counts, bool create) {
  hal::Cache cache;
  cache.token = key;
  if (request.isByFiles) {
    HEARTH_ASSIGN(cache.modelFiles, duplicates(*request.modelFiles, counts.model));
    HEARTH_ASSIGN(cache.dataFiles, duplicates(*request.dataFiles, counts.data));
    return cache;
  }
  HEARTH_ASSIGN(cache.modelFiles,
                openFiles(request.folder, key, CacheFileKind::kModel, counts.model, create));
  HEARTH_ASSIGN(cache.dataFiles,
                openFiles(request.folder, key, CacheFileKind::kData, counts.data, create));
  return cache;
}

Result<CachedPreparation> prepareCached(hal::Device& device, const ModelSource& model,
                                        const hal::PrepareOptions& options,
                                        const CacheRequest* request, CacheKeyHash key) {
  CachedPreparation made;
  hal::CacheFileCounts counts;
  if (request != nullptr)
    counts = device.numberOfCacheFilesNeeded().value_or(hal::CacheFileCounts());
  hal::Cache cache;
  if (counts.model != 0 || counts.data != 0) {
    const hal::CacheToken token = key.finish(device, options);
    auto prepared = prepareFromFiles(device, options, *request, token, counts);
    if (prepared) return CachedPreparation{std::move(*prepared), kCacheHit};
    made.cache = prepared.error().toString();
    base::logDebug("The model is compiled, its cache is not used. {}", made.cache);
    auto opened = openCache(*request, token, counts, true);
    if (opened)
      cache = std::move(*opened);
    else
      made.cache = opened.error().toString();
  }
  HEARTH_ASSIGN(const auto wanted, model());
  const hal::CacheToken token = cache.token;
  const bool isKept = !cache.modelFiles.empty() || !cache.dataFiles.empty();
  HEARTH_ASSIGN(made.prepared, device.prepareModel(wanted, options, std::move(cache)));
  // A driver's library in this process does not learn of pages that were lost.
  if (Status whole = hal::checkPoolsWhole(*wanted); !whole) {
    if (isKept) emptyFiles(*request, token, counts);
    return std::unexpected(std::move(whole.error()));
  }
  return made;
}

}  // namespace hearth::runtime
