// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "base/mutex.h"
#include "drivers/vulkan/product_tuner.h"
#include "hal/device.h"

namespace hearth::vulkan {

// The cache files of one prepared model, for as long as the model is there. Who writes them holds
// the mutex.
struct TunedFiles {
  explicit TunedFiles(hal::Cache cache) : files(std::move(cache)) {}

  const hal::Cache files;
  base::Mutex mutex;
};

// Writes the files again once the tuner has measured what it has noted: their plans' products are
// then in the parts that were found.
void rewriteWhenMeasured(ProductTuner& tuner, const std::shared_ptr<TunedFiles>& files);

}  // namespace hearth::vulkan
