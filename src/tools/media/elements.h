// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tools/media/array.h"

namespace hearth::tools {

// All elements as numbers, without dequantising. 64-bit integers above 2^53 lose low bits.
std::vector<double> toNumbers(const Array& array);

}  // namespace hearth::tools
