// SPDX-License-Identifier: Apache-2.0
// Moving elements of any type from one strided place to another.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "drivers/vulkan/lowering/lowering.h"

namespace hearth::vulkan {

// One loop of a copy. Steps count elements.
struct CopyLoop {
  uint32_t size = 0;
  int64_t inputStep = 0;   // 0 or negative, too
  int64_t outputStep = 0;  // places in the output must not repeat
};

// A copy of the product of all sizes elements; the caller has checked that all places lie inside.
struct Copy {
  TensorId input = 0;
  TensorId output = 0;
  std::vector<CopyLoop> loops;
  int64_t inputFirst = 0;  // the elements with all indices 0
  int64_t outputFirst = 0;
};

// Adds a copy of elements of `elementBytes` bytes. Errors: kUnsupported for elements that are not
// of 1, 2 or 4 bytes, or which the device cannot store, and for more than six loops.
Status addCopy(LoweringContext& context, size_t elementBytes, Copy copy);

// Fills output 0 with this element. Errors as addCopy().
Status addFill(LoweringContext& context, std::vector<uint8_t> element);

// Row-major steps in elements.
std::vector<int64_t> stepsOf(const graph::Dimensions& dimensions);

}  // namespace hearth::vulkan
