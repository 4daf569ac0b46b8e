// SPDX-License-Identifier: Apache-2.0
// What hearth-cpu leaves in a client's cache files, and how it comes back from there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/result.h"
#include "cache/compilation/mapping_manager.h"
#include "cache/store/segment_store.h"
#include "drivers/cpu/plan/plan.h"
#include "drivers/cpu/weights/found_corruptions.h"
#include "drivers/cpu/weights/packed_segment.h"
#include "drivers/cpu/weights/packed_weights.h"
#include "graph/model.h"
#include "hal/device.h"

namespace hearth::cpu {

// One model cache and one data cache.
inline constexpr hal::CacheFileCounts kCacheFileCounts = {1, 1};

// A prepared model, as far as it is saved.
struct ModelParts {
  std::shared_ptr<const graph::Model> model;
  const Plan* plan = nullptr;  // null, with the weights: the model is interpreted
  const PackedWeights* weights = nullptr;
  std::set<uint32_t> referenceOnly;  // operations that XNNPACK refuses
  std::vector<uint8_t> choices;      // MeasuredChoices; empty before they are known
};

// Writes the model into the files, its large bytes into the weight store if there is one, else into
// the data cache, too; and makes the mapping manager know it. Waits for the store to write what was
// packed. Errors leave files behind that are none of this model.
Status saveModel(const ModelParts& parts, cache::SegmentStore& store, const hal::Cache& cache);

// Bytes that were read, as they are written again when more is known.
struct SavedFiles;

// What saveModel() wrote, made from private copies of the files.
struct SavedModel {
  std::shared_ptr<const graph::Model> model;  // keeps all its memory
  // Constants that are only there packed cannot be read: no interpreter takes the model then.
  bool hasHoles = false;
  bool isInterpreted = false;
  std::set<uint32_t> referenceOnly;
  std::shared_ptr<PackedWeights> weights;  // sealed
  // Of packed weights and constants, what lies in the store: its files may be lost while they are
  // in use. The store is null without them.
  std::vector<std::shared_ptr<PackedSegment>> segments;
  std::shared_ptr<cache::SegmentStore> store;
  std::shared_ptr<const FoundCorruptions> corruptions;  // since before they were opened
  std::optional<cache::SegmentKey> copiedScales;  // the segment that the model's are copies of
  std::vector<uint8_t> choices;                   // MeasuredChoices; empty before they were known
  uint64_t mappedBytes = 0;                       // of the store
  std::function<void()> populate;                 // WeightSession::populate
  std::shared_ptr<const SavedFiles> files;
};

// kNotFound when the mapping manager does not know the files; then nothing in them was interpreted.
// Other errors for segments that are gone. The caller prepares the model itself then.
// The store that `options` name is opened only if the files refer to it.
Result<SavedModel> loadModel(const hal::PrepareOptions& options, const hal::Cache& cache);

// Writes the files anew, with choices that were measured since. kIo, kOpFailed.
Status saveChoices(const SavedFiles& files, std::vector<uint8_t> choices, const hal::Cache& cache);

// The same for people who ask what loadModel would do: neither the map nor the store is changed or
// made.
Result<SavedModel> lookAtModel(const hal::PrepareOptions& options, const hal::Cache& cache,
                               cache::MappingManager& map);

// Whose files a token's are, when this process writes them. kOpFailed.
Result<cache::CacheOwner> cacheOwner(const hal::CacheToken& token);

}  // namespace hearth::cpu
