// SPDX-License-Identifier: Apache-2.0
#include "drivers/support_library/saved_compilation.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/byte_reader.h"
#include "cache/compilation/cache_files.h"
#include "cache/compilation/mapping_manager.h"
#include "graph/gathered_constants.h"
#include "graph/model_bytes.h"

namespace hearth::drivers::support_library {
namespace {

constexpr uint64_t kVersion = 1;

Status checkFiles(const hal::Cache& cache) {
  if (cache.modelFiles.size() == kCacheFileCounts.model &&
      cache.dataFiles.size() == kCacheFileCounts.data)
    return {};
  return fail(ErrorCode::kBadData,
              "There are {} and {} cache files; a support library takes {} and {}.",
              cache.modelFiles.size(), cache.dataFiles.size(), kCacheFileCounts.model,
              kCacheFileCounts.data);
}

Result<std::vector<base::Descriptor>> emptyFiles(uint32_t count) {
  std::vector<base::Descriptor> files;
  for (uint32_t i = 0; i < count; ++i) {
    files.emplace_back(::memfd_create("hearth-library-cache", MFD_CLOEXEC));
    if (!files.back().valid())
      return std::unexpected(base::errnoError(errno, "Making a file in memory"));
  }
  return files;
}

Result<base::Descriptor> fileOf(std::span<const uint8_t> bytes) {
  HEARTH_ASSIGN(std::vector<base::Descriptor> files, emptyFiles(1));
  uint64_t written = 0;
  while (written < bytes.size()) {
    const ssize_t count = ::pwrite(files[0].get(), bytes.data() + written, bytes.size() - written,
                                   static_cast<off_t>(written));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::unexpected(base::errnoError(errno, "Writing a file in memory"));
    written += static_cast<uint64_t>(count);
  }
  return std::move(files[0]);
}

// Copies of all files of a library, which still has them and may write to them.
Result<std::vector<memory::Mapping>> bytesOf(const std::vector<base::Descriptor>& files) {
  std::vector<memory::Mapping> mappings;
  for (const base::Descriptor& file : files) {
    HEARTH_ASSIGN(const uint64_t size, file.size());
    if (size == 0) {
      mappings.emplace_back();
      continue;
    }
    HEARTH_ASSIGN(memory::Mapping copy, memory::Mapping::anonymous(size));
    uint64_t done = 0;
    while (done < size) {
      const ssize_t count =
          ::pread(file.get(), copy.data() + done, size - done, static_cast<off_t>(done));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return std::unexpected(base::errnoError(errno, "Reading a library's cache"));
      done += static_cast<uint64_t>(count);
    }
    mappings.push_back(std::move(copy));
  }
  return mappings;
}

}  // namespace

Result<LibraryFiles> makeLibraryFiles(const hal::CacheFileCounts& counts) {
  LibraryFiles files;
  HEARTH_ASSIGN(files.model, emptyFiles(counts.model));
  HEARTH_ASSIGN(files.data, emptyFiles(counts.data));
  return files;
}

std::vector<uint8_t> encodeHead(const SavedHead& head) {
  std::vector<uint64_t> numbers = {kVersion};
  for (const std::vector<uint64_t>* const sizes : {&head.modelSizes, &head.dataSizes}) {
    numbers.push_back(sizes->size());
    numbers.insert(numbers.end(), sizes->begin(), sizes->end());
  }
  numbers.push_back(head.constantBytes);
  std::vector<uint8_t> bytes(numbers.size() * sizeof(uint64_t));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  bytes.insert(bytes.end(), head.model.begin(), head.model.end());
  return bytes;
}

Result<SavedHead> parseHead(std::span<const uint8_t> bytes, uint64_t dataBytes) {
  base::ByteReader reader(bytes);
  SavedHead head;
  const auto version = reader.number<uint64_t>();
  uint64_t left = dataBytes;
  size_t numbers = 4;  // the version, two counts, the bytes of constants
  const auto take = [&](std::vector<uint64_t>* sizes) {
    sizes->resize(reader.bounded(reader.count(sizeof(uint64_t)), kMaxLibraryFiles));
    numbers += sizes->size();
    for (uint64_t& size : *sizes) {
      size = reader.bounded(reader.number<uint64_t>(), left);
      left -= size;
    }
  };
  take(&head.modelSizes);
  take(&head.dataSizes);
  head.constantBytes = reader.bounded(reader.number<uint64_t>(), left);
  left -= head.constantBytes;
  if (!reader.isGood() || version != kVersion || left != 0)
    return fail(ErrorCode::kBadData, "The cache of a support library's model is damaged.");
  head.model = bytes.subspan(numbers * sizeof(uint64_t));
  return head;
}

Status saveCompilation(const graph::Model& model, const LibraryFiles& files,
                       const cache::CacheOwner& owner, const hal::Cache& cache) {
  HEARTH_TRY(checkFiles(cache));
  HEARTH_ASSIGN(const std::vector<memory::Mapping> modelBytes, bytesOf(files.model));
  HEARTH_ASSIGN(const std::vector<memory::Mapping> dataBytes, bytesOf(files.data));
  const auto isEmpty = [](const memory::Mapping& mapping) {
    return mapping.size() == 0;
  };
  if (std::ranges::all_of(modelBytes, isEmpty) && std::ranges::all_of(dataBytes, isEmpty))
    return fail(ErrorCode::kUnsupported, "The support library has written nothing to its cache.");
  graph::GatheredConstants gathered = graph::gatherConstants(model);
  SavedHead head;
  head.constantBytes = gathered.bytes;
  std::vector<std::span<const uint8_t>> data = std::move(gathered.pieces);
  for (const auto& [mappings, sizes] :
       {std::pair(&modelBytes, &head.modelSizes), std::pair(&dataBytes, &head.dataSizes)})
    for (const memory::Mapping& mapping : *mappings) {
      sizes->push_back(mapping.size());
      if (mapping.size() != 0) data.emplace_back(mapping.data(), mapping.size());
    }
  const std::vector<uint8_t> graph = graph::encodeModel(gathered.model);
  head.model = graph;
  const std::vector<uint8_t> headBytes = encodeHead(head);
  const std::span<const uint8_t> modelPieces[] = {headBytes};
  return cache::saveKnownFiles(*cache::MappingManager::shared(), owner, cache.modelFiles[0].get(),
                               modelPieces, cache.dataFiles[0].get(), data);
}

Result<SavedCompilation> loadCompilation(const hal::CacheFileCounts& counts,
                                         const cache::CacheOwner& owner, const hal::Cache& cache) {
  HEARTH_TRY(checkFiles(cache));
  HEARTH_ASSIGN(cache::CacheBytes bytes,
                cache::readKnownFiles(*cache::MappingManager::shared(), owner,
                                      cache.modelFiles[0].get(), cache.dataFiles[0].get()));
  HEARTH_ASSIGN(const SavedHead head,
                parseHead({bytes.model.data(), bytes.content.modelBytes}, bytes.content.dataBytes));
  if (head.modelSizes.size() != counts.model || head.dataSizes.size() != counts.data)
    return fail(ErrorCode::kBadData,
                "The cache has {} and {} files of the support library, which wants {} and {}.",
                head.modelSizes.size(), head.dataSizes.size(), counts.model, counts.data);
  SavedCompilation saved;
  const uint8_t* next = bytes.data.data() + head.constantBytes;
  for (const auto& [sizes, files] : {std::pair(&head.modelSizes, &saved.files.model),
                                     std::pair(&head.dataSizes, &saved.files.data)})
    for (const uint64_t size : *sizes) {
      HEARTH_ASSIGN(base::Descriptor file, fileOf({next, size}));
      files->push_back(std::move(file));
      next += size;
    }
  std::vector<memory::PoolRef> pools;
  if (head.constantBytes != 0)
    pools.push_back(graph::poolOf(std::make_shared<const memory::Mapping>(std::move(bytes.data)),
                                  head.constantBytes));
  HEARTH_ASSIGN(graph::Model model, graph::decodeModel(head.model, std::move(pools)));
  saved.model = std::make_shared<const graph::Model>(std::move(model));
  return saved;
}

}  // namespace hearth::drivers::support_library
