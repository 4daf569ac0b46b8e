// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "cache/store/segment_store.h"
#include "drivers/cpu/compilation_cache/saved_segments.h"
#include "drivers/cpu/prepared_model.h"
#include "graph/model.h"
#include "hal/device.h"
#include "threads/thread_pool.h"

namespace hearth::cpu {

// What a part of a model that was divided may keep.
struct PartLimits {
  unsigned depth = 0;     // how often the model was divided for this part
  size_t keptShapes = 1;  // for how many tuples of shapes it stays prepared
};

// What the parts of a model with unknown shapes have in common: options, threads, the store, and
// the packed weights. Of the parts with the same operations the first one that is prepared finds or
// packs the weights, and is kept; the others use them. Thread-safe.
class ModelFamily {
 public:
  // `saved` holds the constants of a model from a client's cache files, which is packed for this
  // process alone; then there is no store. It is null for others.
  ModelFamily(const hal::PrepareOptions& options, std::shared_ptr<threads::ThreadPool> pool,
              std::shared_ptr<cache::SegmentStore> store, std::shared_ptr<SavedSegments> saved);

  const hal::PrepareOptions& options() const { return options_; }
  const std::shared_ptr<threads::ThreadPool>& pool() const { return pool_; }
  const std::shared_ptr<SavedSegments>& saved() const { return saved_; }

  // The deadline of the preparation, hal::PrepareOptions::deadline, no longer holds.
  void endPreparation() { isPrepared_ = true; }

  // Prepares a part for known shapes. `operations` tells it from parts with other operations; two
  // parts with equal lists have the same ones in the same order. Errors: those of
  // CpuPreparedModel::create().
  Result<std::shared_ptr<CpuPreparedModel>> prepare(std::shared_ptr<const graph::Model> part,
                                                    const std::vector<uint32_t>& operations);

 private:
  struct Part {
    std::vector<uint32_t> operations;
    std::shared_ptr<CpuPreparedModel> first;
  };

  std::shared_ptr<CpuPreparedModel> find(const std::vector<uint32_t>& operations) const;
  void keep(const std::vector<uint32_t>& operations,
            const std::shared_ptr<CpuPreparedModel>& first);
  std::shared_ptr<cache::SegmentStore> storeFor(const graph::Model& part);

  const hal::PrepareOptions options_;
  const std::shared_ptr<threads::ThreadPool> pool_;
  const std::shared_ptr<cache::SegmentStore> store_;
  const std::shared_ptr<SavedSegments> saved_;
  std::atomic<bool> isPrepared_ = false;
  std::atomic<bool> isBundleTaken_ = false;

  mutable base::Mutex mutex_;
  std::vector<Part> parts_;
};

}  // namespace hearth::cpu
