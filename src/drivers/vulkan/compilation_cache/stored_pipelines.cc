// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/compilation_cache/stored_pipelines.h"

#include <mutex>
#include <utility>

#include "base/log.h"
#include "cache/object/store_folder.h"
#include "cache/store/store_facts.h"
#include "drivers/vulkan/compilation_cache/model_cache.h"

namespace hearth::vulkan {
namespace {

std::optional<base::Sha256Digest> buildOf(const GpuFacts& facts) {
  auto build = buildAndGpu(facts);
  if (!build) return std::nullopt;
  return *build;
}

}  // namespace

StoredPipelines::StoredPipelines(const GpuFacts& facts, cache::StoreOptions options,
                                 OpenStore openStore)
    : build_(buildOf(facts)), options_(std::move(options)), openStore_(std::move(openStore)) {}

std::shared_ptr<StoredPipelines> StoredPipelines::create(const GpuFacts& facts,
                                                         cache::StoreOptions options,
                                                         OpenStore openStore) {
  return std::shared_ptr<StoredPipelines>(
      new StoredPipelines(facts, std::move(options), std::move(openStore)));
}

cache::BlobCache* StoredPipelines::pipelines() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(isOpened_, true)) return pipelines_.get();
  if (!build_ || options_.path.empty() || !options_.bundle.empty() ||
      options_.mode == cache::StoreMode::kOff)
    return nullptr;
  auto folder = cache::StoreFolder::open(options_.path, options_.mode == cache::StoreMode::kReadOnly
                                                            ? cache::StoreFolder::Access::kRead
                                                            : cache::StoreFolder::Access::kWrite);
  if (!folder) {
    base::logInfo("Pipelines of the GPU are not kept. {}", folder.error().message);
    return nullptr;
  }
  store_ = openStore_();
  pipelines_ = std::make_unique<cache::BlobCache>(*std::move(folder), cache::kPipelinesFile,
                                                  cache::kPipelineLimits);
  return pipelines_.get();
}

std::string StoredPipelines::nameOf(const PipelineKey& key) const {
  std::string name(build_->begin(), build_->end());
  name += key.shader;
  name += '\0';
  return name + std::to_string(key.constant);
}

std::vector<uint8_t> StoredPipelines::find(const PipelineKey& key) {
  cache::BlobCache* const known = pipelines();
  if (known == nullptr) return {};
  return known->get(nameOf(key)).value_or(std::vector<uint8_t>());
}

void StoredPipelines::keep(const SavedPipeline& pipeline) {
  cache::BlobCache* const known = pipelines();
  if (known == nullptr) return;
  known->set(nameOf(pipeline.key), pipeline.data);
  hasChanged_ = true;
}

std::shared_ptr<cache::SegmentStore> StoredPipelines::store() {
  const std::lock_guard lock(mutex_);
  return store_;
}

void StoredPipelines::save() {
  if (!hasChanged_.exchange(false)) return;
  const auto store = this->store();
  if (store == nullptr) return;
  store->afterPublishing([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    if (const auto saved = self->pipelines()->save(); !saved)
      base::logInfo("Pipelines of the GPU are not kept. {}", saved.error().message);
  });
}

void StoredPipelines::flush() {
  save();
  if (const auto store = this->store()) store->flush();
}

}  // namespace hearth::vulkan
