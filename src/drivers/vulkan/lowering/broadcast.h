// SPDX-License-Identifier: Apache-2.0
// Parameters of shaders whose inputs are broadcast to the shape of the output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "drivers/vulkan/lowering/lowering.h"

namespace hearth::vulkan {

// The number of elements of output 0, its dimensions, and for each of these inputs the step along
// each dimension, 0 where it is repeated; dimensions are padded in front to six. Error:
// kUnsupported for more.
Result<std::vector<uint32_t>> broadcastParameters(const LoweringContext& context,
                                                  const std::vector<size_t>& inputs);

}  // namespace hearth::vulkan
