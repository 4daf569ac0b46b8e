// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth::cpu {

// How rows of a float32 NHWC image are rearranged: each becomes a plane for each phase and channel.
// A phase has the columns that are a stride apart, so that what neighbouring outputs of a
// convolution read at one place of their windows lies side by side.
struct ChannelPlanes {
  size_t height = 0, width = 0, channels = 0;  // of the image
  size_t stride = 1, phases = 1;
  size_t planeSize = 0;  // numbers of a plane

  size_t rowSize() const { return phases * channels * planeSize; }

  // Writes the planes of row `y` of `image`, [phases][channels][planeSize], `numbers` of each that
  // count. The first one of phase 0 is that of `column`. What lies outside the image is zero.
  void arrange(const float* image, int64_t y, int64_t column, size_t numbers, float* to) const;
};

}  // namespace hearth::cpu
