// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/channel_planes.h"

#include <algorithm>

#include "drivers/cpu/microkernels/x86/f32_narrow_line.h"

namespace hearth::cpu {

void ChannelPlanes::arrange(const float* image, int64_t y, int64_t column, size_t numbers,
                            float* to) const {
  if (y < 0 || y >= static_cast<int64_t>(height)) {
    std::fill_n(to, rowSize(), 0.0f);
    return;
  }
  const float* const line = image + static_cast<size_t>(y) * width * channels;
  const auto count = static_cast<int64_t>(numbers);
  const auto step = static_cast<int64_t>(stride);
  const auto columns = static_cast<int64_t>(width);
  for (size_t phase = 0; phase < phases; ++phase, to += channels * planeSize) {
    const int64_t start = column + static_cast<int64_t>(phase);
    const int64_t begin = std::clamp<int64_t>((step - 1 - start) / step, 0, count);
    const int64_t end =
        start >= columns ? begin : std::clamp((columns - 1 - start) / step + 1, begin, count);
    for (size_t c = 0; c < channels; ++c) {
      float* const plane = to + c * planeSize;
      std::fill(plane, plane + begin, 0.0f);
      std::fill(plane + end, plane + planeSize, 0.0f);
    }
    if (begin == end) continue;
    const float* const from = line + (start + begin * step) * static_cast<int64_t>(channels);
    if (stride * channels == 1)
      std::copy_n(from, end - begin, to + begin);
    else
      splitF32Channels(from, stride * channels, static_cast<size_t>(end - begin), channels,
                       to + begin, planeSize);
  }
}

}  // namespace hearth::cpu
