// SPDX-License-Identifier: Apache-2.0
// The runtime's part of compilation caching: names, keys and the three ways to a prepared model.
// NNAPI's rules (ANeuralNetworksCompilation_setCaching, and the HAL's prepareModelFromCache).
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

// More files of a kind than this no device gets.
inline constexpr uint32_t kMaxCacheFiles = 32;

// What a client gave for caching: a token, and a folder or open files. Value type.
struct CacheRequest {
  hal::CacheToken token{};
  std::string folder;
  // In place of a folder: files for a model that one device takes as a whole.
  bool isByFiles = false;
  std::shared_ptr<const std::vector<base::Descriptor>> modelFiles;
  std::shared_ptr<const std::vector<base::Descriptor>> dataFiles;
};

// The key under which a driver caches a part of a model: SHA-256 over the client's token, the
// operations of the part where the model is divided, device name and version, preference and
// priority. Nothing of the model itself: that token and model belong together is the client's part.
class CacheKeyHash {
 public:
  explicit CacheKeyHash(const hal::CacheToken& token) { hash_.update(token); }
  // `model`: 0 for the main one, then those that IF and WHILE refer to as the partitioner meets
  // them. `operation`: in run order.
  void addOperation(uint32_t model, uint32_t operation);
  hal::CacheToken finish(const hal::Device& device, const hal::PrepareOptions& options);

 private:
  base::Sha256 hash_;
};

enum class CacheFileKind : char { kModel = '1', kData = '2' };

// FOLDER/, two letters 'A' to 'P' for each byte of the key (low half first), the kind, the index.
std::string cacheFileName(const std::string& folder, const hal::CacheToken& key, CacheFileKind kind,
                          uint32_t index);

// The files of a key, open for reading and writing; `create` makes those that are missing. Errors:
// kIo, kBadData.
Result<hal::Cache> openCache(const CacheRequest& request, const hal::CacheToken& key,
                             const hal::CacheFileCounts& counts, bool create);

inline constexpr char kCacheHit[] = "hit";

struct CachedPreparation {
  std::shared_ptr<hal::PreparedModel> prepared;
  // kCacheHit, or why not; empty where nothing was to be cached.
  std::string cache;
};

// Gives the model of a part, which is not made before.
using ModelSource = std::function<Result<std::shared_ptr<const graph::Model>>()>;

// Makes a part of a model ready: from its cache files, if they are there and the driver takes them;
// else from what `model` gives (asked only then), with the files open for writing if that works;
// and without any where `request` is null or the device caches nothing. Problems of the cache are
// never errors.
Result<CachedPreparation> prepareCached(hal::Device& device, const ModelSource& model,
                                        const hal::PrepareOptions& options,
                                        const CacheRequest* request, CacheKeyHash key);

}  // namespace hearth::runtime
