// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "drivers/vulkan/plan/plan.h"

namespace hearth::vulkan {

// The constants of a plan, in the order and with the gaps that they have in the GPU's memory.
class ConstantBytes {
 public:
  // Makes those that the plan makes; refers to the others in the model. Errors as
  // PlannedTensor::make.
  static Result<ConstantBytes> of(const Plan& plan, uint64_t alignment);
  // Those that pieces() of an earlier process had, wherever they are now.
  static ConstantBytes ofPieces(std::vector<std::span<const uint8_t>> pieces);

  // They follow each other and have Plan::constantBytes bytes together. Valid while this object and
  // the model are.
  std::span<const std::span<const uint8_t>> pieces() const { return pieces_; }

  // How many of the bytes are not the model's own.
  uint64_t madeBytes() const;

 private:
  std::vector<std::vector<uint8_t>> made_;
  std::vector<uint8_t> gap_;
  std::vector<std::span<const uint8_t>> pieces_;
};

}  // namespace hearth::vulkan
