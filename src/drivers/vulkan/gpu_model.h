// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "drivers/vulkan/context/gpu.h"
#include "graph/model.h"
#include "hal/device.h"

namespace hearth::vulkan {

// A prepared model whose arguments may be tensors in the memory of the GPU (DeviceTensor).
class GpuModel : public hal::PreparedModel {
 public:
  virtual const std::shared_ptr<Gpu>& gpu() const = 0;
  // The size of an input or output of these dimensions, of which 0 is any and an empty list all.
  // kBadData for one that does not exist or has others; kUnsupported for a scalar, and for
  // dimensions that neither the model nor the caller knows.
  virtual Result<uint64_t> argumentBytes(bool isInput, uint32_t index,
                                         const graph::Dimensions& wanted) const = 0;
};

}  // namespace hearth::vulkan
