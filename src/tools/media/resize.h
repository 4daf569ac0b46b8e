// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "tools/media/picture.h"

namespace hearth::tools {

// Bilinear resize whose filter is widened by the scale when shrinking, in the arithmetic of
// Pillow's BILINEAR: rows first, then columns, 8-bit samples in between, weights of 22 fractional
// bits. kBadData when the result or the picture in between exceeds 4 * kMaxPixels
// or a side of the result 65536.
Result<Picture> resizeBilinear(const Picture& picture, uint32_t width, uint32_t height);

}  // namespace hearth::tools
