// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/mutex.h"
#include "base/result.h"
#include "drivers/vulkan/context/buffer.h"
#include "drivers/vulkan/context/gpu.h"
#include "drivers/vulkan/plan/constant_bytes.h"

namespace hearth::vulkan {

// The constants of one model for several shapes of its inputs. They lie on the GPU once where they
// are the same bytes, as those of most models are: only tables for resizing and the like depend on
// shapes. Thread-safe.
class SharedConstants {
 public:
  struct Uploaded {
    std::shared_ptr<const void> owner;  // of what `bytes` refers to
    ConstantBytes bytes;
    std::shared_ptr<Buffer> buffer;
  };

  // A buffer with these constants, which refer to what `owner` owns; null for none. Errors as
  // Buffer::create() and upload().
  Result<std::shared_ptr<const Uploaded>> find(const std::shared_ptr<Gpu>& gpu,
                                               std::shared_ptr<const void> owner,
                                               ConstantBytes constants);

 private:
  base::Mutex mutex_;
  std::shared_ptr<const Uploaded> first_;  // those of the first call
};

}  // namespace hearth::vulkan
