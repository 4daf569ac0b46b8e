// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/plan/constant_bytes.h"

#include <utility>

namespace hearth::vulkan {

Result<ConstantBytes> ConstantBytes::of(const Plan& plan, uint64_t alignment) {
  ConstantBytes constants;
  constants.gap_.resize(alignment);
  uint64_t end = 0;
  const auto fillTo = [&](uint64_t offset) {
    if (offset != end) constants.pieces_.push_back(std::span(constants.gap_).first(offset - end));
    end = offset;
  };
  for (const PlannedTensor& tensor : plan.tensors) {
    if (tensor.place != PlannedTensor::Place::kConstants) continue;
    fillTo(tensor.offset);
    const uint8_t* bytes = tensor.constant;
    if (tensor.make) {
      HEARTH_ASSIGN(std::vector<uint8_t> made, tensor.make());
      constants.made_.push_back(std::move(made));
      bytes = constants.made_.back().data();
    }
    constants.pieces_.emplace_back(bytes, tensor.bytes);
    end += tensor.bytes;
  }
  fillTo(plan.constantBytes);
  return constants;
}

ConstantBytes ConstantBytes::ofPieces(std::vector<std::span<const uint8_t>> pieces) {
  ConstantBytes constants;
  constants.pieces_ = std::move(pieces);
  return constants;
}

uint64_t ConstantBytes::madeBytes() const {
  uint64_t bytes = 0;
  for (const std::vector<uint8_t>& made : made_) bytes += made.size();
  return bytes;
}

}  // namespace hearth::vulkan
