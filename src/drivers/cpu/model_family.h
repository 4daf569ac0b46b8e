// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "cache/store/segment_store.h"
#include "drivers/cpu/compilation_cache/model_cache.h"
#include "drivers/cpu/compilation_cache/save_queue.h"
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

// A model from a client's cache files: its constants, and the packed weights of its parts. What
// these lack is packed.
struct SavedFamily {
  std::shared_ptr<SavedSegments> constants;  // null: the model is not from cache files
  SavedParts parts;
};

// How the packed weights of a family's parts are kept in a client's cache files.
struct FamilyKeeping {
  // Writes them. Called in the background when a part with new weights is prepared, with all parts
  // or, for a saved model, with those that its files lack. Returns why they were not written; empty
  // when they were. Null: they are not kept.
  std::function<std::string(std::vector<PartWeights>)> keep;
  hal::CacheToken token{};
};

// What the parts of a model with unknown shapes have in common: options, threads, the store, and
// the packed weights. Of the parts with the same operations the first one that is prepared finds or
// packs the weights, and is kept; the others use them. The destructor waits until what was prepared
// is written to the client's cache files. Thread-safe.
class ModelFamily {
 public:
  // A saved model finds nothing in `store`. `givenBytes` is the size of the whole model's
  // graph::Model::constantBytes: what parts have behind them follows from shapes.
  ModelFamily(const hal::PrepareOptions& options, std::shared_ptr<threads::ThreadPool> pool,
              std::shared_ptr<cache::SegmentStore> store, SavedFamily saved, FamilyKeeping keeping,
              uint64_t givenBytes);
  ~ModelFamily();
  ModelFamily(const ModelFamily&) = delete;
  ModelFamily& operator=(const ModelFamily&) = delete;

  const hal::PrepareOptions& options() const { return options_; }
  const std::shared_ptr<threads::ThreadPool>& pool() const { return pool_; }
  const std::shared_ptr<SavedSegments>& saved() const { return saved_.constants; }

  // The deadline of the preparation, hal::PrepareOptions::deadline, no longer holds. Writes the
  // client's cache files, although nothing may be packed yet; those of a saved model only where
  // they lack a part.
  void endPreparation();

  // Waits until the cache files are written.
  void finishSaves() const;
  // Why they were not written, for hal::StartReport::cacheProblem.
  std::string cacheProblem() const;

  // Prepares a part for known shapes. `operations` tells it from parts with other operations; two
  // parts with equal lists have the same ones in the same order. Errors: those of
  // CpuPreparedModel::create().
  Result<std::shared_ptr<CpuPreparedModel>> prepare(std::shared_ptr<const graph::Model> part,
                                                    const std::vector<uint32_t>& operations);

 private:
  using Table = std::tuple<uint32_t, uint64_t, uint64_t>;  // pool, offset, length
  struct Part {
    std::vector<uint32_t> operations;
    std::shared_ptr<CpuPreparedModel> first;
  };

  bool isWorthKeeping(const Part& part) const;
  void keepLater();
  void keepNow();
  std::shared_ptr<CpuPreparedModel> find(const std::vector<uint32_t>& operations) const;
  // True when it is kept, and will not be made again.
  bool keep(const std::vector<uint32_t>& operations,
            const std::shared_ptr<CpuPreparedModel>& first);
  const SavedPart& savedPart(const std::vector<uint32_t>& operations) const;
  std::shared_ptr<cache::SegmentStore> storeFor(const graph::Model& part);

  const hal::PrepareOptions options_;
  const std::shared_ptr<threads::ThreadPool> pool_;
  const std::shared_ptr<cache::SegmentStore> store_;
  const SavedFamily saved_;
  const SavedPart unsaved_;  // of parts that are not in saved_
  const FamilyKeeping keeping_;
  const uint64_t givenBytes_;
  std::atomic<bool> isPrepared_ = false;

  mutable base::Mutex mutex_;
  std::vector<Part> parts_;
  // tablesOnlyLookedUp() of the parts in a bundle; none before the first.
  std::optional<std::vector<Table>> bundleTables_;
  std::vector<std::shared_ptr<SaveQueue::Save>> saves_;
  std::string cacheProblem_;
};

}  // namespace hearth::cpu
