// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/tuned_files.h"

#include <mutex>

#include "base/caught.h"
#include "base/log.h"
#include "drivers/vulkan/compilation_cache/model_cache.h"
#include "drivers/vulkan/prepared_model.h"

namespace hearth::vulkan {

void rewriteWhenMeasured(ProductTuner& tuner, const std::shared_ptr<TunedFiles>& files) {
  tuner.whenMeasured([weak = std::weak_ptr(files)](const OpenGpu& open, ProductTuner& measured) {
    const std::shared_ptr<TunedFiles> kept = weak.lock();
    if (kept == nullptr) return;
    const GpuFacts& facts = open.gpu->facts();
    const std::lock_guard lock(kept->mutex);
    const Status saved = base::caught([&] {
      return saveChosenParts([&](Plan* plan) { return measured.choose(facts, plan); },
                             *open.pipelines, facts, kept->files);
    });
    if (!saved) base::logInfo("Measured parts are not cached. {}", saved.error().toString());
  });
}

}  // namespace hearth::vulkan
