// SPDX-License-Identifier: Apache-2.0
#include "tools/key_points.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/media/elements.h"

namespace hearth::tools {
namespace {

constexpr uint64_t kBodyPoints = 17;
// Of 99 numbers in a list, nobody knows what they are.
constexpr uint64_t kPosePoints = 33;
constexpr std::array<uint64_t, 4> kPixelPoints = {21, kPosePoints, 468, 478};
constexpr uint64_t kMostSets = 16;
constexpr size_t kNumbers = 3;  // of a point
constexpr double kMostFraction = 2;

}  // namespace

std::optional<std::vector<KeyPoint>> keyPointsOf(const Array& output, const TensorInfo& tensor,
                                                 double width, double height) {
  const std::vector<uint64_t>& shape = output.shape;
  uint64_t longDimensions = 0;
  uint64_t count = 1;
  for (const uint64_t dimension : shape) {
    if (dimension == 0 || dimension > kMostSets * kPixelPoints.back() * kNumbers)
      return std::nullopt;
    longDimensions += dimension > 1;
    count *= dimension;
    if (count > kMostSets * kPixelPoints.back() * kNumbers) return std::nullopt;
  }
  const bool isTable = shape.size() >= 2 && shape.back() == kNumbers;
  const uint64_t points = isTable ? shape[shape.size() - 2] : count / kNumbers;
  const bool isBody = isTable && points == kBodyPoints;
  const bool isInPixels =
      std::ranges::find(kPixelPoints, points) != kPixelPoints.end() &&
      (isTable || (longDimensions == 1 && count == points * kNumbers && points != kPosePoints));
  if (!isBody && !isInPixels) return std::nullopt;

  std::vector<double> numbers = toNumbers(output);
  if (numbers.size() != count) return std::nullopt;
  for (double& number : numbers) number = tensor.dequantize(number);
  if (!std::ranges::all_of(numbers, [](double number) { return std::isfinite(number); }))
    return std::nullopt;
  double largest = 0;
  for (size_t i = 0; i < numbers.size(); ++i)
    if (i % kNumbers != 2) largest = std::max(largest, std::abs(numbers[i]));
  const bool isFraction = isBody || largest <= kMostFraction;
  std::vector<KeyPoint> list;
  for (size_t i = 0; i < numbers.size(); i += kNumbers) {
    KeyPoint point;
    point.x = isBody ? numbers[i + 1] : numbers[i];
    point.y = isBody ? numbers[i] : numbers[i + 1];
    if (isBody) point.score = numbers[i + 2];
    if (!isFraction) {
      point.x /= width;
      point.y /= height;
    }
    list.push_back(point);
  }
  return list;
}

}  // namespace hearth::tools
