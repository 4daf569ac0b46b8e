// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// What operations have made another tensor of, by repeating its parts.
struct RepeatedTensor {
  uint32_t operand = 0;                   // the tensor with each part once
  std::vector<uint32_t> parts = {};       // the part of it that each part of the other one is
  bool areTransposed = false;             // the parts, which are matrices then
  std::vector<uint32_t> operations = {};  // that repeat it, the last one first
};

// Finds what `operand` repeats, by CONCATENATION of a tensor with itself, BROADCAST_TO and changes
// of shape; `operand` itself where it repeats nothing. A part is what the last `rank` dimensions
// span, of which the tensor has at least as many; if there are two, TRANSPOSE may exchange them.
// Booleans are also followed through their numbers, which exporters repeat in their place: CAST,
// and NOT_EQUAL to 0. Errors: those of parsing the operations.
Result<RepeatedTensor> findRepeated(PlanBuilder* builder, uint32_t operand, size_t rank);

// Whether the operand is computed to be one 0. Exporters add such numbers, made of an input of
// integers, so that the input stays in the file.
bool isComputedZero(PlanBuilder* builder, uint32_t operand);

}  // namespace hearth::cpu
