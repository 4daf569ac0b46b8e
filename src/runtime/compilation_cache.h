// SPDX-License-Identifier: Apache-2.0
// The runtime's part of compilation caching: file names, keys, and preparation with or without
// cache files, by NNAPI's rules (ANeuralNetworksCompilation_setCaching, and the HAL's
// prepareModelFromCache).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "base/sha256.h"
#include "hal/device.h"

namespace hearth::runtime {

// The most files of one kind that a device may ask for.
inline constexpr uint32_t kMaxCacheFiles = 32;

// The client's token, and its folder or open files. Value type.
struct CacheRequest {
  hal::CacheToken token{};
  std::string folder;
  // The client gave open files instead of a folder; they serve only a model that one device takes
  // as a whole.
  bool isByFiles = false;
  std::shared_ptr<const std::vector<base::Descriptor>> modelFiles;
  std::shared_ptr<const std::vector<base::Descriptor>> dataFiles;
};

// The key under which a driver caches a part of a model: SHA-256 over the client's token, the
// operations of the part if the model is partitioned, device name and version, preference and
// priority. The model's contents are not hashed: the client ensures that token and model match.
class CacheKeyHash {
 public:
  explicit CacheKeyHash(const hal::CacheToken& token) { hash_.update(token); }
  // `model` is 0 for the main model; the subgraphs of IF and WHILE are numbered as the partitioner
  // meets them. Operations are added in run order.
  void addOperation(uint32_t model, uint32_t operation);
  hal::CacheToken finish(const hal::Device& device, const hal::PrepareOptions& options);

 private:
  base::Sha256 hash_;
};

enum class CacheFileKind : char { kModel = '1', kData = '2' };

// FOLDER/, two letters 'A' to 'P' for each byte of the key (low half first), the kind, the index.
std::string cacheFileName(const std::string& folder, const hal::CacheToken& key, CacheFileKind kind,
                          uint32_t index);

// Opens the files of a key for reading and writing; `create` creates missing ones. Errors: kIo for
// a file that cannot be opened or trusted, kBadData when the client's open files are not as many as
// the device wants.
Result<hal::Cache> openCache(const CacheRequest& request, const hal::CacheToken& key,
                             const hal::CacheFileCounts& counts, bool create);

inline constexpr char kCacheHit[] = "hit";

struct CachedPreparation {
  std::shared_ptr<hal::PreparedModel> prepared;
  // kCacheHit, or why not; empty without caching.
  std::string cache;
};

// Returns the model of a part. A cache hit never calls it.
using ModelSource = std::function<Result<std::shared_ptr<const graph::Model>>()>;

// Prepares a part of a model from its cache files, if they exist and the driver accepts them.
// Otherwise prepares the model of `model`, with the cache files open for writing if they can be
// opened. Uses no files if `request` is null or the device caches nothing. A problem of the cache
// is never an error.
Result<CachedPreparation> prepareCached(hal::Device& device, const ModelSource& model,
                                        const hal::PrepareOptions& options,
                                        const CacheRequest* request, CacheKeyHash key);

}  // namespace hearth::runtime
