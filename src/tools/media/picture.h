// SPDX-License-Identifier: Apache-2.0
// Pictures in memory; PNG, JPEG and BMP files.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace hearth::tools {

// The most pixels of a file, checked before any of them is decoded.
inline constexpr uint64_t kMaxPixels = uint64_t{64} << 20;

// 8-bit samples, rows from top to bottom, channels interleaved. Value type.
struct Picture {
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t channels = 0;  // 1 = grey, 3 = RGB
  std::vector<uint8_t> samples;

  const uint8_t* pixel(uint32_t x, uint32_t y) const {
    return samples.data() + (static_cast<size_t>(y) * width + x) * channels;
  }
};

// Decodes to RGB; alpha is dropped, 16-bit samples lose their low byte. kBadData for unreadable
// files and for more than `maxPixels` pixels.
Result<Picture> decodePicture(std::span<const uint8_t> bytes, uint64_t maxPixels = kMaxPixels);

// Converts to one channel: luma by ITU-R BT.601, which leaves grey pixels as they are.
Picture toGrey(const Picture& picture);

// PNG file of a picture. kOutOfMemory.
Result<std::vector<uint8_t>> encodePng(const Picture& picture);

}  // namespace hearth::tools
