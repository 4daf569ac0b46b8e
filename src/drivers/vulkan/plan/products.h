// SPDX-License-Identifier: Apache-2.0
// Dispatches of products of matrices. A work group computes a square tile of the result, an
// invocation a square part of the tile; how large they are changes the time that a product takes,
// and not a bit of its result.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "drivers/vulkan/context/gpu.h"
#include "drivers/vulkan/plan/plan.h"

namespace hearth::vulkan {

// Elements of a side of an invocation's part, by Dispatch::constant.
inline constexpr std::array<uint32_t, 3> kParts = {4, 2, 8};

// Work groups along a side of so many elements.
uint32_t productGroups(uint64_t elements, uint32_t choice = 0);

struct ProductShape {
  uint32_t rows = 0, columns = 0, depth = 0;
};
// None for a dispatch of another kind.
std::optional<ProductShape> productShapeOf(const Dispatch& dispatch);

// A name for the products of this shader that are about as large: within a factor of two along
// each side, and in their number. They may be expected to be fastest in the same parts.
std::string productClassOf(const Dispatch& dispatch, const ProductShape& shape);

// Lets a product be computed in other parts. Returns false, and changes nothing, where the GPU does
// not take so many work groups.
bool choosePart(uint32_t choice, const GpuFacts& facts, Dispatch* dispatch);

}  // namespace hearth::vulkan
