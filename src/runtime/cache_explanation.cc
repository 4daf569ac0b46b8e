// SPDX-License-Identifier: Apache-2.0
#include "runtime/cache_explanation.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "hal/cache_explainer.h"
#include "runtime/cache_file_state.h"
#include "runtime/explained_model.h"

namespace hearth::runtime {
namespace {

class Explainer {
 public:
  Explainer(const CacheRequest& request, std::vector<CacheExplanation>* parts)
      : request_(request), parts_(parts) {}

  Result<CachedPreparation> prepare(hal::Device& device, const ModelSource& model,
                                    const hal::PrepareOptions& options, CacheKeyHash key) {
    HEARTH_ASSIGN(const std::shared_ptr<const graph::Model> wanted, model());
    CacheExplanation part;
    part.device = device.name();
    part.operations = wanted->main().operations.size();
    const hal::CacheFileCounts counts =
        device.numberOfCacheFilesNeeded().value_or(hal::CacheFileCounts());
    if (counts.model == 0 && counts.data == 0) {
      part.code = "no-caching";
      part.reason = base::formatText("The device {} caches nothing.", part.device);
    } else {
      explain(device, *wanted, options, key.finish(device, options), counts, &part);
    }
    parts_->push_back(std::move(part));
    return CachedPreparation{explainedModel({}), ""};
  }

 private:
  void explain(hal::Device& device, const graph::Model& model, const hal::PrepareOptions& options,
               const hal::CacheToken& key, const hal::CacheFileCounts& counts,
               CacheExplanation* part) {
    const auto miss = [&](std::string code, std::string reason) {
      part->state = CacheExplanation::State::kMiss;
      part->code = std::move(code);
      part->reason = std::move(reason);
    };
    part->key = cacheKeyLetters(key);
    for (const auto& [kind, count] : {std::pair(CacheFileKind::kModel, counts.model),
                                      std::pair(CacheFileKind::kData, counts.data)})
      for (uint32_t i = 0; i < count; ++i)
        part->files.push_back(stateOfCacheFile(request_.folder, key, kind, i));
    const auto present = std::ranges::count_if(part->files, &CacheFileState::exists);
    if (present == 0) return miss("no-files", "There are no files with this key.");
    if (static_cast<size_t>(present) < part->files.size())
      return miss("incomplete", base::formatText("Of {} files with this key {} are there.",
                                                 part->files.size(), present));
    const auto cache = openCache(request_, key, counts, false);
    if (!cache) return miss("unreadable", cache.error().toString());
    hal::CacheVerdict verdict;
    if (auto* const explainer = dynamic_cast<hal::CacheExplainer*>(&device)) {
      verdict = explainer->explainCache(model, options, *cache);
    } else {
      verdict.code = hal::kCacheNotTold;
      verdict.reason = base::formatText(
          "The driver of {} does not tell what it makes of its files.", part->device);
    }
    if (verdict.code == hal::kCacheNotTold) {
      part->state = CacheExplanation::State::kUnknown;
      part->code = std::move(verdict.code);
      part->reason = std::move(verdict.reason);
      return;
    }
    if (!verdict.isHit) return miss(std::move(verdict.code), std::move(verdict.reason));
    part->state = CacheExplanation::State::kHit;
    part->code = std::move(verdict.code);
    part->isSameModel = verdict.isSameModel;
  }

  const CacheRequest& request_;
  std::vector<CacheExplanation>* const parts_;
};

}  // namespace

Result<std::vector<CacheExplanation>> explainParts(
    std::shared_ptr<const graph::Model> model,
    const std::vector<std::shared_ptr<hal::Device>>& devices, PartitioningOptions options) {
  std::vector<CacheExplanation> parts;
  Explainer explainer(*options.cache, &parts);
  options.preparePart = [&](hal::Device& device, const ModelSource& source,
                            const hal::PrepareOptions& prepare, const CacheRequest*,
                            CacheKeyHash key) {
    return explainer.prepare(device, source, prepare, key);
  };
  HEARTH_TRY(preparePartitioned(std::move(model), devices, options));
  return parts;
}

}  // namespace hearth::runtime
