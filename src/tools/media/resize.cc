// SPDX-License-Identifier: Apache-2.0
#include "tools/media/resize.h"

#include <algorithm>
#include <cmath>

namespace hearth::tools {
namespace {

constexpr int kFractionBits = 22;
constexpr uint32_t kMaxSide = 1 << 16;

// The input positions and weights of each output position.
struct Taps {
  std::vector<uint32_t> first;
  std::vector<uint32_t> count;
  std::vector<int32_t> weights;  // `stride` for each output position, sum 2^22
  size_t stride = 0;
};

// Rounds like Pillow; std::lround would round halves away from zero.
int64_t roundHalfUp(double value) {
  return static_cast<int64_t>(std::floor(value + 0.5));
}

Taps makeTaps(uint32_t from, uint32_t to) {
  const double scale = static_cast<double>(from) / to;
  const double widening = std::max(scale, 1.0);
  Taps taps;
  taps.stride = static_cast<size_t>(std::ceil(widening)) * 2 + 1;
  taps.weights.resize(taps.stride * to);
  std::vector<double> triangle(taps.stride);
  for (uint32_t i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * scale;
    const int64_t low = std::max<int64_t>(roundHalfUp(centre - widening), 0);
    const int64_t high = std::min<int64_t>(roundHalfUp(centre + widening), from);
    double sum = 0;
    for (int64_t j = low; j < high; ++j) {
      const double distance = std::abs((static_cast<double>(j) - centre + 0.5) / widening);
      triangle[j - low] = distance < 1.0 ? 1.0 - distance : 0.0;
      sum += triangle[j - low];
    }
    taps.first.push_back(static_cast<uint32_t>(low));
    taps.count.push_back(static_cast<uint32_t>(high - low));
    for (int64_t j = 0; j < high - low; ++j) {
      const double weight = sum != 0 ? triangle[j] / sum : 0;
      taps.weights[i * taps.stride + j] =
          static_cast<int32_t>(roundHalfUp(weight * (1 << kFractionBits)));
    }
  }
  return taps;
}

uint8_t toSample(int64_t sum) {
  return static_cast<uint8_t>(std::clamp<int64_t>(sum >> kFractionBits, 0, 255));
}

Picture resizeRows(const Picture& in, uint32_t width) {
  const Taps taps = makeTaps(in.width, width);
  Picture out{width, in.height, in.channels, {}};
  out.samples.resize(static_cast<size_t>(width) * in.height * in.channels);
  uint8_t* to = out.samples.data();
  for (uint32_t y = 0; y < in.height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      const int32_t* weights = taps.weights.data() + x * taps.stride;
      const uint8_t* from = in.pixel(taps.first[x], y);
      for (uint32_t c = 0; c < in.channels; ++c) {
        int64_t sum = int64_t{1} << (kFractionBits - 1);
        for (uint32_t k = 0; k < taps.count[x]; ++k)
          sum += static_cast<int64_t>(from[k * in.channels + c]) * weights[k];
        *to++ = toSample(sum);
      }
    }
  }
  return out;
}

Picture resizeColumns(const Picture& in, uint32_t height) {
  const Taps taps = makeTaps(in.height, height);
  Picture out{in.width, height, in.channels, {}};
  const size_t row = static_cast<size_t>(in.width) * in.channels;
  out.samples.resize(row * height);
  std::vector<int64_t> sums(row);
  for (uint32_t y = 0; y < height; ++y) {
    const int32_t* weights = taps.weights.data() + y * taps.stride;
    std::fill(sums.begin(), sums.end(), int64_t{1} << (kFractionBits - 1));
    for (uint32_t k = 0; k < taps.count[y]; ++k) {
      const uint8_t* from = in.pixel(0, taps.first[y] + k);
      for (size_t i = 0; i < row; ++i) sums[i] += static_cast<int64_t>(from[i]) * weights[k];
    }
    std::transform(sums.begin(), sums.end(), out.samples.begin() + static_cast<ptrdiff_t>(y * row),
                   toSample);
  }
  return out;
}

}  // namespace

Result<Picture> resizeBilinear(const Picture& picture, uint32_t width, uint32_t height) {
  const uint64_t tallest = std::max(picture.height, height);
  if (width == 0 || height == 0 || width > kMaxSide || height > kMaxSide ||
      width > 4 * kMaxPixels / tallest)
    return fail(ErrorCode::kBadData,
                "A picture of {} x {} pixels is not resized to {} x {}; at most {} pixels and {} "
                "on a side are made.",
                picture.width, picture.height, width, height, 4 * kMaxPixels, kMaxSide);
  Picture result = picture;
  if (width != result.width) result = resizeRows(result, width);
  if (height != result.height) result = resizeColumns(result, height);
  return result;
}

}  // namespace hearth::tools
