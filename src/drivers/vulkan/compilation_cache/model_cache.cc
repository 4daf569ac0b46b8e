// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/compilation_cache/model_cache.h"

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "base/build_id.h"
#include "base/env.h"
#include "base/trace.h"
#include "cache/compilation/cache_files.h"
#include "cache/compilation/mapping_manager.h"

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

Status saveModel(const Plan& plan, std::span<const std::span<const uint8_t>> constants,
                 Pipelines& pipelines, const GpuFacts& facts, const hal::Cache& cache) {
  const base::TraceSpan span("start", "save the compilation");
  HEARTH_TRY(checkFiles(cache));
  HEARTH_ASSIGN(const cache::CacheOwner owner, ownerOf(facts, cache.token));
  std::vector<SavedPipeline> saved;
  for (const PipelineKey& key : pipelinesOf(plan)) saved.push_back(pipelines.save(key));
  const std::vector<uint8_t> model = encodePlan(plan, saved);
  const std::span<const uint8_t> modelPieces[] = {model};
  return cache::saveKnownFiles(*cache::MappingManager::shared(), owner, cache.modelFiles[0].get(),
                               modelPieces, cache.dataFiles[0].get(), constants);
}

Result<SavedModel> loadModel(const GpuFacts& facts, const hal::Cache& cache) {
  const base::TraceSpan span("start", "load the compilation");
  HEARTH_TRY(checkFiles(cache));
  HEARTH_ASSIGN(const cache::CacheOwner owner, ownerOf(facts, cache.token));
  HEARTH_ASSIGN(cache::CacheBytes bytes,
                cache::readKnownFiles(*cache::MappingManager::shared(), owner,
                                      cache.modelFiles[0].get(), cache.dataFiles[0].get()));
  HEARTH_ASSIGN(CachedPlan cached,
                parsePlan({bytes.model.data(), bytes.content.modelBytes}, facts));
  if (cached.plan.constantBytes != bytes.content.dataBytes)
    return fail(ErrorCode::kBadData, "A data cache has {} bytes, its plan needs {}.",
                bytes.content.dataBytes, cached.plan.constantBytes);
  return SavedModel{std::move(cached), std::move(bytes.data)};
}

}  // namespace hearth::vulkan
