// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/compilation_cache/model_cache.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/build_id.h"
#include "base/env.h"
#include "base/trace.h"
#include "cache/compilation/cache_files.h"
#include "cache/compilation/mapping_manager.h"
#include "graph/gathered_constants.h"
#include "graph/model_bytes.h"
#include "hal/request_check.h"
#include "ops/operation.h"

namespace hearth::vulkan {
namespace {

Status checkFiles(const hal::Cache& cache) {
  if (cache.modelFiles.size() == kCacheFileCounts.model &&
      cache.dataFiles.size() == kCacheFileCounts.data)
    return {};
  return fail(ErrorCode::kBadData,
              "There are {} and {} cache files; the GPU driver takes {} and {}.",
              cache.modelFiles.size(), cache.dataFiles.size(), kCacheFileCounts.model,
              kCacheFileCounts.data);
}

Result<cache::CacheOwner> ownerOf(const GpuFacts& facts, const hal::CacheToken& token) {
  HEARTH_ASSIGN(const base::Sha256Digest build, buildAndGpu(facts));
  return cache::CacheOwner{build, ::geteuid(), token};
}

// What lies in the data cache of a model with unknown dimensions: the constants of the model, and
// behind them what plans have besides, each once.
class FamilyData {
 public:
  explicit FamilyData(const graph::GatheredConstants& gathered) : pieces_(gathered.pieces) {
    for (const std::span<const uint8_t> piece : pieces_) {
      if (!piece.empty()) ofModel_.try_emplace(piece.data(), bytes_, piece.size());
      bytes_ += piece.size();
    }
  }

  CachedPiece place(std::span<const uint8_t> bytes) {
    if (bytes.empty()) return {};
    const auto next = ofModel_.upper_bound(bytes.data());
    if (next != ofModel_.begin()) {
      const auto& [begin, piece] = *std::prev(next);
      const auto from = static_cast<uint64_t>(bytes.data() - begin);
      if (from <= piece.bytes && bytes.size() <= piece.bytes - from)
        return {piece.offset + from, bytes.size()};
    }
    const std::string_view letters(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto [known, isNew] = others_.try_emplace(letters, bytes_);
    if (isNew) {
      pieces_.push_back(bytes);
      bytes_ += bytes.size();
    }
    return {known->second, bytes.size()};
  }

  std::span<const std::span<const uint8_t>> pieces() const { return pieces_; }

 private:
  struct Piece {
    Piece(uint64_t at, uint64_t size) : offset(at), bytes(size) {}
    uint64_t offset, bytes;
  };
  std::vector<std::span<const uint8_t>> pieces_;
  uint64_t bytes_ = 0;
  std::map<const uint8_t*, Piece, std::less<>> ofModel_;  // by where it is now
  std::map<std::string_view, uint64_t> others_;           // by content
};

Result<SavedModel> parseWhole(const GpuFacts& facts, cache::CacheBytes bytes) {
  HEARTH_ASSIGN(CachedPlan cached,
                parsePlan({bytes.model.data(), bytes.content.modelBytes}, facts));
  if (cached.plan.constantBytes != bytes.content.dataBytes)
    return fail(ErrorCode::kBadData, "A data cache has {} bytes, its plan needs {}.",
                bytes.content.dataBytes, cached.plan.constantBytes);
  return SavedModel{std::move(cached), std::move(bytes.data)};
}

// Whether a plan has the arguments of a model, and inputs of shapes that they may have there.
bool hasArgumentsOf(const Plan& plan, const graph::Subgraph& main) {
  const auto isSame = [&](uint32_t own, uint32_t other) {
    const graph::Operand& operand = plan.arguments.operands[own];
    return operand.type == main.operands[other].type &&
           operand.dimensions == main.operands[other].dimensions;
  };
  const auto isSpecialized = [&](uint32_t own, uint32_t other) {
    const graph::Operand& operand = plan.arguments.operands[own];
    return operand.type == main.operands[other].type && graph::isFullySpecified(operand) &&
           std::ranges::equal(
               operand.dimensions, main.operands[other].dimensions,
               [](uint32_t known, uint32_t open) { return open == 0 || open == known; });
  };
  return std::ranges::equal(plan.arguments.inputs, main.inputs, isSpecialized) &&
         std::ranges::equal(plan.arguments.outputs, main.outputs, isSame);
}

Result<SavedFamily> parseFamilyFiles(const GpuFacts& facts, cache::CacheBytes bytes) {
  const uint64_t dataBytes = bytes.content.dataBytes;
  HEARTH_ASSIGN(CachedFamily cached,
                parseFamily({bytes.model.data(), bytes.content.modelBytes}, dataBytes, facts));
  const auto data = std::make_shared<const memory::Mapping>(std::move(bytes.data));
  std::vector<memory::PoolRef> pools;
  if (cached.constantBytes != 0) pools.push_back(graph::poolOf(data, cached.constantBytes));
  HEARTH_ASSIGN(graph::Model model, graph::decodeModel(cached.model, std::move(pools)));
  HEARTH_TRY(ops::validateOperations(model));
  SavedFamily saved;
  for (CachedMember& member : cached.members) {
    if (!hasArgumentsOf(member.plan, model.main()))
      return fail(ErrorCode::kBadData, "A plan has other arguments than its model.");
    FamilyMember made{std::move(member.shapes), std::move(member.plan), {}, data, member.isTuned};
    for (const CachedPiece& piece : member.constants)
      made.constants.emplace_back(data->data() + piece.offset, piece.bytes);
    saved.members.push_back(std::move(made));
  }
  saved.model = std::make_shared<const graph::Model>(std::move(model));
  saved.pipelines = std::move(cached.pipelines);
  return saved;
}

}  // namespace

// The build covers the shaders.
Result<base::Sha256Digest> buildAndGpu(const GpuFacts& facts) {
  const auto build = base::buildIdOf(reinterpret_cast<const void*>(&buildAndGpu));
  if (build.empty())
    return fail(ErrorCode::kOpFailed,
                "The library of the GPU driver has no build identifier; link it with --build-id.");
  base::Sha256 hash;
  hash.update(build);
  hash.update(facts.identity);
  const std::string salt = base::envString(base::Env::kPackingSalt);
  hash.update(salt.data(), salt.size());
  return hash.finish();
}

std::set<PipelineKey> pipelinesOf(const Plan& plan) {
  std::set<PipelineKey> keys;
  for (const Dispatch& dispatch : plan.dispatches)
    keys.insert({dispatch.shader, dispatch.constant});
  return keys;
}

Status saveModel(const Plan& plan, bool isTuned,
                 std::span<const std::span<const uint8_t>> constants, Pipelines& pipelines,
                 const GpuFacts& facts, const hal::Cache& cache) {
  const base::TraceSpan span("start", "save the compilation");
  HEARTH_TRY(checkFiles(cache));
  HEARTH_ASSIGN(const cache::CacheOwner owner, ownerOf(facts, cache.token));
  std::vector<SavedPipeline> saved;
  for (const PipelineKey& key : pipelinesOf(plan)) saved.push_back(pipelines.save(key));
  const std::vector<uint8_t> model = encodePlan(plan, saved, isTuned);
  const std::span<const uint8_t> modelPieces[] = {model};
  return cache::saveKnownFiles(*cache::MappingManager::shared(), owner, cache.modelFiles[0].get(),
                               modelPieces, cache.dataFiles[0].get(), constants);
}

Status saveFamily(const graph::Model& model, std::span<const FamilyMember> members,
                  Pipelines& pipelines, const GpuFacts& facts, const hal::Cache& cache) {
  const base::TraceSpan span("start", "save the compilation");
  HEARTH_TRY(checkFiles(cache));
  HEARTH_ASSIGN(const cache::CacheOwner owner, ownerOf(facts, cache.token));
  const graph::GatheredConstants gathered = graph::gatherConstants(model);
  const std::vector<uint8_t> graph = graph::encodeModel(gathered.model);
  FamilyData data(gathered);
  CachedFamily family;
  family.model = graph;
  family.constantBytes = gathered.bytes;
  std::set<PipelineKey> keys;
  for (const FamilyMember& member : members) {
    CachedMember& made = family.members.emplace_back();
    made.shapes = member.shapes;
    made.plan = member.plan;
    made.isTuned = member.isTuned;
    for (const std::span<const uint8_t> piece : member.constants)
      made.constants.push_back(data.place(piece));
    keys.merge(pipelinesOf(member.plan));
  }
  for (const PipelineKey& key : keys) family.pipelines.push_back(pipelines.save(key));
  const std::vector<uint8_t> bytes = encodeFamily(family);
  const std::span<const uint8_t> modelPieces[] = {bytes};
  HEARTH_TRY(cache::saveKnownFiles(*cache::MappingManager::shared(), owner,
                                   cache.modelFiles[0].get(), modelPieces, cache.dataFiles[0].get(),
                                   data.pieces()));
  const Status whole = hal::checkPoolsWhole(model);
  // Constants that were lost read as zeros.
  if (!whole) static_cast<void>(::ftruncate(cache.modelFiles[0].get(), 0));
  return whole;
}

Status saveChosenParts(const std::function<bool(Plan*)>& choose, Pipelines& pipelines,
                       const GpuFacts& facts, const hal::Cache& cache) {
  HEARTH_TRY(checkFiles(cache));
  HEARTH_ASSIGN(const cache::CacheOwner owner, ownerOf(facts, cache.token));
  HEARTH_ASSIGN(const cache::CacheBytes bytes,
                cache::readKnownFiles(*cache::MappingManager::shared(), owner,
                                      cache.modelFiles[0].get(), cache.dataFiles[0].get()));
  const std::span<const uint8_t> before(bytes.model.data(), bytes.content.modelBytes);
  const auto compiled =
      [&](const std::set<PipelineKey>& keys) -> Result<std::vector<SavedPipeline>> {
    std::vector<SavedPipeline> saved;
    for (const PipelineKey& key : keys) {
      HEARTH_TRY(pipelines.find(key));
      saved.push_back(pipelines.save(key));
    }
    return saved;
  };
  std::vector<uint8_t> after;
  if (isFamily(before)) {
    HEARTH_ASSIGN(CachedFamily family, parseFamily(before, bytes.content.dataBytes, facts));
    std::set<PipelineKey> keys;
    for (CachedMember& member : family.members) {
      member.isTuned = choose(&member.plan);
      keys.merge(pipelinesOf(member.plan));
    }
    HEARTH_ASSIGN(family.pipelines, compiled(keys));
    after = encodeFamily(family);
  } else {
    HEARTH_ASSIGN(CachedPlan cached, parsePlan(before, facts));
    const bool isTuned = choose(&cached.plan);
    HEARTH_ASSIGN(const std::vector<SavedPipeline> saved, compiled(pipelinesOf(cached.plan)));
    after = encodePlan(cached.plan, saved, isTuned);
  }
  if (std::ranges::equal(before, after)) return {};
  const std::span<const uint8_t> model[] = {after};
  const std::span<const uint8_t> data[] = {{bytes.data.data(), bytes.content.dataBytes}};
  return cache::saveKnownFiles(*cache::MappingManager::shared(), owner, cache.modelFiles[0].get(),
                               model, cache.dataFiles[0].get(), data);
}

Result<std::variant<SavedModel, SavedFamily>> loadModel(const GpuFacts& facts,
                                                        const hal::Cache& cache) {
  const base::TraceSpan span("start", "load the compilation");
  HEARTH_TRY(checkFiles(cache));
  HEARTH_ASSIGN(const cache::CacheOwner owner, ownerOf(facts, cache.token));
  HEARTH_ASSIGN(cache::CacheBytes bytes,
                cache::readKnownFiles(*cache::MappingManager::shared(), owner,
                                      cache.modelFiles[0].get(), cache.dataFiles[0].get()));
  if (isFamily({bytes.model.data(), bytes.content.modelBytes})) {
    HEARTH_ASSIGN(SavedFamily family, parseFamilyFiles(facts, std::move(bytes)));
    return family;
  }
  HEARTH_ASSIGN(SavedModel whole, parseWhole(facts, std::move(bytes)));
  return whole;
}

}  // namespace hearth::vulkan
