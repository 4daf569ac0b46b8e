// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/compilation_cache/cache_explanation.h"

#include <unistd.h>

#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "cache/compilation/cache_inspection.h"
#include "cache/compilation/mapping_manager.h"
#include "drivers/cpu/compilation_cache/model_cache.h"

namespace hearth::cpu {
namespace {

// Of larger constants the cache may have only the packed form.
constexpr uint64_t kComparedBytes = 63;

// A digest of what isSameStructure compares of one subgraph.
class StructureHash {
 public:
  StructureHash(const graph::Model& model, const graph::Subgraph& subgraph)
      : model_(model), subgraph_(subgraph) {}

  base::Sha256Digest finish() {
    add(subgraph_.inputs);
    for (const graph::Operation& operation : subgraph_.operations) {
      put(static_cast<int32_t>(operation.type));
      add(operation.inputs);
      add(operation.outputs);
    }
    add(subgraph_.outputs);
    return hash_.finish();
  }

 private:
  template <typename T>
  void put(const T& value) {
    static_assert(std::is_arithmetic_v<T>);
    hash_.update(&value, sizeof value);
  }

  void add(const std::vector<uint32_t>& operands) {
    put(operands.size());
    for (const uint32_t index : operands) {
      const auto [number, isNew] = numbers_.try_emplace(index, numbers_.size());
      put(number->second);
      if (isNew) addOperand(subgraph_.operands[index]);
    }
  }

  void addOperand(const graph::Operand& operand) {
    put(static_cast<int32_t>(operand.type));
    put(operand.dimensions.size());
    for (const uint32_t dimension : operand.dimensions) put(dimension);
    put(operand.scale);
    put(operand.zeroPoint);
    put(operand.perChannel.channelDim);
    put(operand.perChannel.scales.size());
    hash_.update(operand.perChannel.scales.digest());
    put(operand.isConstant());
    put(operand.hasValue());
    if (operand.lifetime == graph::Lifetime::kSubgraph) put(operand.subgraphIndex);
    if (!operand.isConstant()) return;
    put(operand.location.length);
    if (operand.location.length <= kComparedBytes)
      hash_.update(model_.constantData(operand), operand.location.length);
  }

  const graph::Model& model_;
  const graph::Subgraph& subgraph_;
  std::unordered_map<uint32_t, size_t> numbers_;  // of operands, in the order of their first use
  base::Sha256 hash_;
};

std::string codeOf(const Error& error) {
  return error.code() == ErrorCode::kNotFound ? "segment-missing" : "unusable";
}

}  // namespace

bool isSameStructure(const graph::Model& a, const graph::Model& b) {
  if (a.subgraphs.size() != b.subgraphs.size()) return false;
  for (size_t i = 0; i < a.subgraphs.size(); ++i)
    if (StructureHash(a, a.subgraphs[i]).finish() != StructureHash(b, b.subgraphs[i]).finish())
      return false;
  return true;
}

hal::CacheVerdict explainCache(const graph::Model& model, const hal::PrepareOptions& options,
                               const hal::Cache& cache) {
  const auto owner = cacheOwner(cache.token);
  if (!owner) return {false, "unusable", owner.error().toString(), std::nullopt};
  if (cache.modelFiles.size() != kCacheFileCounts.model ||
      cache.dataFiles.size() != kCacheFileCounts.data)
    return {false, "unusable", "hearth-cpu takes one model cache and one data cache.",
            std::nullopt};
  const std::unique_ptr<cache::MappingManager> map = cache::MappingManager::forLooking();
  const cache::CacheInspection found = cache::inspectCacheFiles(
      *map, cache.token, owner->build, cache.modelFiles[0].get(), cache.dataFiles[0].get());
  if (found.finding != cache::CacheFinding::kVerified)
    return {false, cache::cacheFindingName(found.finding), found.reason, std::nullopt};
  if (found.known->owner.build != owner->build)
    return {false, "other-build",
            "The cache files were written by another build of hearth-cpu or for another CPU.",
            std::nullopt};
  if (found.known->owner.uid != ::geteuid())
    return {false, "other-user",
            base::formatText("The cache files were written by user {}.", found.known->owner.uid),
            std::nullopt};
  const auto saved = lookAtModel(options, cache, *map);
  if (!saved) return {false, codeOf(saved.error()), saved.error().toString(), std::nullopt};
  return {true, "hit", "", isSameStructure(model, *saved->model)};
}

}  // namespace hearth::cpu
