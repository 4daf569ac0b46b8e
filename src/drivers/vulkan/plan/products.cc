// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/plan/products.h"

#include <bit>

#include "base/format.h"

namespace hearth::vulkan {
namespace {

constexpr uint32_t kGroupSide = 8;  // invocations of a work group

}  // namespace

uint32_t productGroups(uint64_t elements, uint32_t choice) {
  const uint32_t tile = kGroupSide * kParts[choice];
  return static_cast<uint32_t>((elements + tile - 1) / tile);
}

std::optional<ProductShape> productShapeOf(const Dispatch& dispatch) {
  // Parameters as the shaders have them.
  const std::vector<uint32_t>& p = dispatch.parameters;
  if (dispatch.shader.starts_with("convolution.") && p.size() > 8)
    return ProductShape{p[0] * p[1] * p[2], p[6], p[5] * p[7] * p[8]};
  if (dispatch.shader.starts_with("matmul.") && p.size() > 2) return ProductShape{p[0], p[2], p[1]};
  return std::nullopt;
}

std::string productClassOf(const Dispatch& dispatch, const ProductShape& shape) {
  return base::formatText("{} {} {} {} {}", dispatch.shader, std::bit_width(shape.rows),
                          std::bit_width(shape.columns), std::bit_width(shape.depth),
                          std::bit_width(dispatch.groups[2]));
}

bool choosePart(uint32_t choice, const GpuFacts& facts, Dispatch* dispatch) {
  const std::optional<ProductShape> shape = productShapeOf(*dispatch);
  if (!shape || choice >= kParts.size()) return false;
  const uint32_t across = productGroups(shape->rows, choice);
  const uint32_t down = productGroups(shape->columns, choice);
  if (across > facts.maxGroups[0] || down > facts.maxGroups[1]) return false;
  dispatch->constant = choice;
  dispatch->groups[0] = across;
  dispatch->groups[1] = down;
  return true;
}

}  // namespace hearth::vulkan
