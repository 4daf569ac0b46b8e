// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "base/mutex.h"
#include "base/result.h"
#include "drivers/vulkan/context/buffer.h"
#include "drivers/vulkan/context/gpu.h"
#include "drivers/vulkan/plan/constant_bytes.h"
#include "graph/model.h"

namespace hearth::vulkan {

// The constants of one model for several shapes of its inputs. They lie on the GPU once where they
// are the same bytes, as those of most models are: only tables for resizing and the like depend on
// shapes. Thread-safe.
class SharedConstants {
 public:
  // A buffer with these constants, which refer to `model`; null for none. Errors as
  // Buffer::create() and upload().
  Result<std::shared_ptr<Buffer>> find(const std::shared_ptr<Gpu>& gpu,
                                       std::shared_ptr<const graph::Model> model,
                                       ConstantBytes constants);

 private:
  struct First {
    std::shared_ptr<const graph::Model> model;
    ConstantBytes constants;
    std::shared_ptr<Buffer> buffer;
  };

  base::Mutex mutex_;
  std::optional<First> first_;  // those of the first call
};

}  // namespace hearth::vulkan
