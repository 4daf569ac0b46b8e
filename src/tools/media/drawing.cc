// SPDX-License-Identifier: Apache-2.0
#include "tools/media/drawing.h"

#include <algorithm>
#include <cmath>

namespace hearth::tools {
namespace {

// The pixel at a fraction of a side, which may lie far outside the picture. `fraction` is a number.
int64_t pixelAt(double fraction, uint32_t side) {
  constexpr double kFar = 1 << 30;
  return static_cast<int64_t>(std::clamp(std::floor(fraction * side), -kFar, kFar));
}

void setPixel(int64_t x, int64_t y, Colour colour, Picture* picture) {
  if (x < 0 || y < 0 || x >= picture->width || y >= picture->height) return;
  uint8_t* const pixel = picture->samples.data() +
                         (static_cast<size_t>(y) * picture->width + static_cast<size_t>(x)) * 3;
  std::ranges::copy(colour, pixel);
}

void fill(int64_t left, int64_t top, int64_t right, int64_t bottom, Colour colour,
          Picture* picture) {
  for (int64_t y = std::max<int64_t>(top, 0); y <= std::min<int64_t>(bottom, picture->height); ++y)
    for (int64_t x = std::max<int64_t>(left, 0); x <= std::min<int64_t>(right, picture->width); ++x)
      setPixel(x, y, colour, picture);
}

}  // namespace

Picture toRgb(const Picture& picture) {
  if (picture.channels == 3) return picture;
  Picture colours{picture.width, picture.height, 3, {}};
  for (const uint8_t sample : picture.samples)
    colours.samples.insert(colours.samples.end(), 3, sample);
  return colours;
}

uint32_t lineWidth(const Picture& picture) {
  constexpr uint32_t kLinesInSide = 160;
  return std::max(1u, std::min(picture.width, picture.height) / kLinesInSide);
}

void drawBox(double left, double top, double right, double bottom, Colour colour,
             Picture* picture) {
  if (std::isnan(left) || std::isnan(top) || std::isnan(right) || std::isnan(bottom)) return;
  const int64_t x0 = pixelAt(left, picture->width);
  const int64_t y0 = pixelAt(top, picture->height);
  // The edge of a box is that of its last pixel.
  const int64_t x1 = pixelAt(right, picture->width) - 1;
  const int64_t y1 = pixelAt(bottom, picture->height) - 1;
  const int64_t more = int64_t{lineWidth(*picture)} - 1;
  if (x1 < x0 || y1 < y0) return;
  fill(x0, y0, x1, std::min(y0 + more, y1), colour, picture);
  fill(x0, std::max(y1 - more, y0), x1, y1, colour, picture);
  fill(x0, y0, std::min(x0 + more, x1), y1, colour, picture);
  fill(std::max(x1 - more, x0), y0, x1, y1, colour, picture);
}

void drawDot(double x, double y, Colour colour, Picture* picture) {
  if (std::isnan(x) || std::isnan(y)) return;
  const int64_t column = pixelAt(x, picture->width);
  const int64_t row = pixelAt(y, picture->height);
  const int64_t radius = lineWidth(*picture) + 1;
  for (int64_t dy = -radius; dy <= radius; ++dy)
    for (int64_t dx = -radius; dx <= radius; ++dx)
      if (dx * dx + dy * dy <= radius * radius) setPixel(column + dx, row + dy, colour, picture);
}

}  // namespace hearth::tools
