// SPDX-License-Identifier: Apache-2.0
// Numbers of one type as numbers of another.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "drivers/vulkan/lowering/lowering.h"

namespace hearth::vulkan {

// Adds what makes `count` stored numbers of one tensor those of another one. `types` names both as
// the shaders do: "f16f32". Real numbers are cut towards zero where the result is an integer.
Status addCast(LoweringContext& context, std::string_view types, TensorId from, TensorId to,
               uint64_t count);

// Adds float32 numbers of a float16 tensor, or the other way round.
Status addWidening(LoweringContext& context, TensorId from, TensorId to, uint64_t count);
Status addNarrowing(LoweringContext& context, TensorId from, TensorId to, uint64_t count);

}  // namespace hearth::vulkan
