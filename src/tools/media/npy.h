// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files, format versions 1.0 to 3.0, row-major and little-endian.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/media/array.h"

namespace hearth::tools {

// Parses types f2 f4 f8, i1 i2 i4 i8, u1 u2 u4 u8, b1. kBadData for a malformed file, kUnsupported
// for other types, byte orders and Fortran order. Checks the header's sizes against the number of
// bytes before it allocates.
Result<Array> parseNpy(std::span<const uint8_t> bytes);

// Makes a file of version 1.0. int4 is written as int8.
std::vector<uint8_t> formatNpy(const Array& array);

}  // namespace hearth::tools
