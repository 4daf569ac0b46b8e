// SPDX-License-Identifier: Apache-2.0
// Writes prepared models of hearth-cpu to a client's cache files, and reads them from there.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
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

// Packed weights of one part of a model with unknown shapes.
struct PartWeights {
  base::Sha256Digest part{};  // tells it from the other parts of the model
  std::shared_ptr<const PackedWeights> weights;
};

// The parts of a prepared model that are saved.
struct ModelParts {
  std::shared_ptr<const graph::Model> model;
  // Tells which constants are only needed packed. Null where that is not known, as with control
  // flow: all constants are saved then.
  const Plan* plan = nullptr;
  const PackedWeights* weights = nullptr;  // null for models that are not planned as a whole
  std::set<uint32_t> referenceOnly;        // operations that XNNPACK refuses
  std::vector<uint8_t> choices;            // MeasuredChoices; empty before they are known
  std::vector<PartWeights> family;         // of a model without `weights`
};

// Writes the model to the cache files and registers it with the mapping manager. Large bytes go to
// the weight store if there is one, else to the data cache. Waits until the store has written what
// was packed. After an error the files do not count as those of this model.
Status saveModel(const ModelParts& parts, cache::SegmentStore& store, const hal::Cache& cache);

// Where the packed weights of a part of a model with unknown shapes lie.
struct SavedPart {
  std::map<WeightPlace, PackedPlace> places;
  uint64_t mappedBytes = 0;  // of segments of the store
};
using SavedParts = std::map<base::Sha256Digest, SavedPart>;  // by PartWeights::part

// The bytes of the files that a model was loaded from; saveParts() and saveChoices() write them
// again.
struct SavedFiles;

// A model that saveModel() wrote, loaded from private copies of the files.
struct SavedModel {
  std::shared_ptr<const graph::Model> model;  // owns all memory that it refers to
  // Whether constants exist only packed and cannot be read: such a model cannot be interpreted.
  bool hasHoles = false;
  // Whether it is not planned as a whole; there are no `weights` then.
  bool isInterpreted = false;
  std::set<uint32_t> referenceOnly;
  std::shared_ptr<PackedWeights> weights;  // sealed
  SavedParts family;                       // only where `isInterpreted`
  // The segments of the store with packed weights and constants: pages of them may be lost while
  // they are in use. The store is null if there are none.
  std::vector<std::shared_ptr<PackedSegment>> segments;
  std::shared_ptr<cache::SegmentStore> store;
  std::shared_ptr<const FoundCorruptions> corruptions;  // since before segments were found
  std::optional<cache::SegmentKey> copiedScales;  // the segment that the scales were copied from
  std::vector<uint8_t> choices;                   // MeasuredChoices; empty before they were known
  uint64_t mappedBytes = 0;                       // of segments of the store
  std::function<void()> populate;                 // WeightSession::populate
  std::shared_ptr<const SavedFiles> files;
};

// Loads a model from cache files. Opens the store that `options` name only if the files refer to
// it. Error: kNotFound when the mapping manager does not know the files, which are not interpreted
// then, or when the store lacks a segment; others. After any error the client compiles the model.
Result<SavedModel> loadModel(const hal::PrepareOptions& options, const hal::Cache& cache);

// Writes the files of a model with unknown shapes again, with parts that they lack. Errors:
// kNotFound when the store lacks a segment that they name; those of saveModel().
Status saveParts(const SavedFiles& files, std::span<const PartWeights> parts,
                 cache::SegmentStore& store, const hal::Cache& cache);

// Writes the files again, with choices that were measured since. Errors: kIo, kOpFailed.
Status saveChoices(const SavedFiles& files, std::vector<uint8_t> choices, const hal::Cache& cache);

// Does what loadModel() would, to explain it: neither creates nor changes the map or the store.
Result<SavedModel> lookAtModel(const hal::PrepareOptions& options, const hal::Cache& cache,
                               cache::MappingManager& map);

// The owner of cache files that this process writes under a token. Error: kOpFailed.
Result<cache::CacheOwner> cacheOwner(const hal::CacheToken& token);

}  // namespace hearth::cpu
