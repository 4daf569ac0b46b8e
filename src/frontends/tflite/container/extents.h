// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace hearth::tflite {

// What lies at [begin, end) of a container.
struct Extent {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string name;
};

// Error: kBadData when two of them share a byte. Parts that overlap could be nested in each other,
// so that the work of reading them would grow out of proportion to the file.
Status checkApart(std::vector<Extent> extents);

}  // namespace hearth::tflite
