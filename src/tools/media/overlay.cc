// SPDX-License-Identifier: Apache-2.0
#include "tools/media/overlay.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/media/elements.h"

namespace hearth::tools {
namespace {

constexpr uint64_t kMaxScores = 4096;

bool isPlainInteger(const TensorInfo& tensor) {
  switch (tensor.type) {
    case HEARTH_TYPE_FLOAT16:
    case HEARTH_TYPE_FLOAT32:
    case HEARTH_TYPE_FLOAT64:
    case HEARTH_TYPE_BOOL:
    case HEARTH_TYPE_INT4:
    case HEARTH_TYPE_COMPLEX64:
    case HEARTH_TYPE_STRING:
      return false;
    default:
      return tensor.scale == 0.0f;
  }
}

}  // namespace

Colour classColour(uint32_t index) {
  if (index == 0) return {0, 0, 0};
  // Steps of the golden angle keep hues of neighbours apart; lightness varies in three steps.
  const double hue = std::fmod(index * 0.61803398875, 1.0) * 6.0;
  const double value = 1.0 - 0.2 * (index / 7 % 3);
  const double rest = hue - std::floor(hue);
  const auto full = static_cast<uint8_t>(255 * value);
  const auto rising = static_cast<uint8_t>(255 * value * rest);
  const auto falling = static_cast<uint8_t>(255 * value * (1.0 - rest));
  switch (static_cast<int>(hue)) {
    case 0:
      return {full, rising, 0};
    case 1:
      return {falling, full, 0};
    case 2:
      return {0, full, rising};
    case 3:
      return {0, falling, full};
    case 4:
      return {rising, 0, full};
    default:
      return {full, 0, falling};
  }
}

std::optional<ClassMap> classMapOf(const Array& output, const TensorInfo& tensor) {
  const std::vector<uint64_t>& shape = output.shape;
  const bool isMap = shape.size() == 3 && isPlainInteger(tensor);
  const bool isScores = shape.size() == 4 && shape[3] >= 2 && shape[3] <= kMaxScores;
  if ((!isMap && !isScores) || shape[0] != 1 || shape[1] < 2 || shape[2] < 2 ||
      shape[1] > kMaxPixels || shape[2] > kMaxPixels / shape[1])
    return std::nullopt;
  const std::vector<double> numbers = toNumbers(output);
  ClassMap map{static_cast<uint32_t>(shape[2]), static_cast<uint32_t>(shape[1]), {}};
  const size_t positions = static_cast<size_t>(shape[1]) * shape[2];
  const size_t step = isMap ? 1 : shape[3];
  if (numbers.size() != positions * step) return std::nullopt;
  map.classes.resize(positions);
  for (size_t i = 0; i < positions; ++i) {
    const auto first = numbers.begin() + static_cast<ptrdiff_t>(i * step);
    if (isMap) {
      if (!(*first >= 0 && *first <= UINT32_MAX)) return std::nullopt;
      map.classes[i] = static_cast<uint32_t>(*first);
    } else {
      map.classes[i] = static_cast<uint32_t>(
          std::max_element(first, first + static_cast<ptrdiff_t>(step)) - first);
    }
  }
  return map;
}

std::vector<std::pair<uint32_t, uint64_t>> countClasses(const ClassMap& map) {
  std::map<uint32_t, uint64_t> counts;
  for (const uint32_t index : map.classes) ++counts[index];
  std::vector<std::pair<uint32_t, uint64_t>> list(counts.begin(), counts.end());
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return list;
}

Picture drawOverlay(const ClassMap& map, const std::optional<Picture>& picture) {
  Picture out{picture ? picture->width : map.width, picture ? picture->height : map.height, 3, {}};
  out.samples.resize(static_cast<size_t>(out.width) * out.height * 3);
  uint8_t* to = out.samples.data();
  for (uint32_t y = 0; y < out.height; ++y) {
    const size_t row = static_cast<size_t>(static_cast<uint64_t>(y) * map.height / out.height);
    for (uint32_t x = 0; x < out.width; ++x) {
      const auto column = static_cast<size_t>(static_cast<uint64_t>(x) * map.width / out.width);
      const uint32_t index = map.classes[row * map.width + column];
      const Colour colour = classColour(index);
      const uint8_t* from = picture ? picture->pixel(x, y) : nullptr;
      for (size_t c = 0; c < 3; ++c) {
        if (from == nullptr)
          *to++ = colour[c];
        else if (index == 0)
          *to++ = from[picture->channels == 1 ? 0 : c];
        else
          *to++ = static_cast<uint8_t>((from[picture->channels == 1 ? 0 : c] + colour[c]) / 2);
      }
    }
  }
  return out;
}

}  // namespace hearth::tools
