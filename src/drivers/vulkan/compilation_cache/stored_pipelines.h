// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/sha256.h"
#include "cache/blob/blob_cache.h"
#include "cache/store/segment_store.h"
#include "cache/store/store_options.h"
#include "drivers/vulkan/context/gpu.h"
#include "drivers/vulkan/context/pipelines.h"

namespace hearth::vulkan {

// Pipelines in the folder of the weight store, for programs that have no compilation cache. They
// lie in one file, which holds a digest of all its bytes and is read as a whole: what has changed
// counts as absent. Thread-safe.
class StoredPipelines final : public PipelineStore,
                              public std::enable_shared_from_this<StoredPipelines> {
 public:
  // Opens the store whose background thread saves; null: nothing is saved.
  using OpenStore = std::function<std::shared_ptr<cache::SegmentStore>()>;
  // `options` are of that store.
  static std::shared_ptr<StoredPipelines> create(const GpuFacts& facts, cache::StoreOptions options,
                                                 OpenStore openStore);

  std::vector<uint8_t> find(const PipelineKey& key) override;
  void keep(const SavedPipeline& pipeline) override;
  void save() override;
  void flush() override;

 private:
  StoredPipelines(const GpuFacts& facts, cache::StoreOptions options, OpenStore openStore);
  // Null where no folder can be used.
  cache::BlobCache* pipelines();
  // Null before pipelines() has opened it.
  std::shared_ptr<cache::SegmentStore> store();
  std::string nameOf(const PipelineKey& key) const;

  const std::optional<base::Sha256Digest> build_;  // buildAndGpu()
  const cache::StoreOptions options_;
  const OpenStore openStore_;
  base::Mutex mutex_;
  bool isOpened_ = false;
  std::unique_ptr<cache::BlobCache> pipelines_;
  std::shared_ptr<cache::SegmentStore> store_;
  std::atomic<bool> hasChanged_ = false;  // since the last save()
};

}  // namespace hearth::vulkan
