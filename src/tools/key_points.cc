// SPDX-License-Identifier: Apache-2.0
#include "tools/key_points.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>

#include "tools/media/elements.h"

namespace hearth::tools {
namespace {

constexpr uint64_t kBodyPoints = 17;
// Of 99 numbers in a list, nobody knows what they are.
constexpr uint64_t kPosePoints = 33;
constexpr std::array<uint64_t, 4> kListPoints = {21, kPosePoints, 468, 478};
constexpr std::array<uint64_t, 7> kTablePoints = {21, kPosePoints, 68, 98, 106, 468, 478};
constexpr uint64_t kMostNumbers = 16 * 478 * 3;
constexpr double kMostFraction = 2;

// Whether a name says "landmarks", "key points" or the like.
bool isOfPoints(std::string_view name) {
  std::string letters;
  for (const char c : name)
    if (std::isalpha(static_cast<unsigned char>(c)) != 0)
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return letters.contains("landmark") || letters.contains("keypoint");
}

// How the numbers of an output make points.
struct Layout {
  uint64_t points = 0;   // of a set
  uint64_t numbers = 3;  // of a point
  bool isBody = false;   // y, x and score
};

std::optional<Layout> layoutOf(const std::vector<uint64_t>& shape, uint64_t count, bool isNamed) {
  const bool isTable = shape.size() >= 2 && (shape.back() == 2 || shape.back() == 3);
  if (isTable) {
    const Layout layout{shape[shape.size() - 2], shape.back(),
                        shape.back() == 3 && shape[shape.size() - 2] == kBodyPoints};
    if (layout.isBody || (isNamed && layout.points > 1) ||
        std::ranges::contains(kTablePoints, layout.points))
      return layout;
    return std::nullopt;
  }
  const bool isList = std::ranges::count_if(shape, [](uint64_t size) { return size > 1; }) == 1;
  const Layout layout{count / 3};
  if (isList && count % 3 == 0 && layout.points != kPosePoints &&
      std::ranges::contains(kListPoints, layout.points))
    return layout;
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<KeyPoint>> keyPointsOf(const Array& output, const TensorInfo& tensor,
                                                 std::string_view name, double width,
                                                 double height) {
  uint64_t count = 1;
  for (const uint64_t dimension : output.shape) {
    if (dimension == 0 || dimension > kMostNumbers) return std::nullopt;
    count *= dimension;
    if (count > kMostNumbers) return std::nullopt;
  }
  const std::optional<Layout> layout =
      layoutOf(output.shape, count, isOfPoints(name) || isOfPoints(tensor.name));
  if (!layout) return std::nullopt;

  std::vector<double> numbers = toNumbers(output);
  if (numbers.size() != count) return std::nullopt;
  for (double& number : numbers) number = tensor.dequantize(number);
  if (!std::ranges::all_of(numbers, [](double number) { return std::isfinite(number); }))
    return std::nullopt;
  double largest = 0;
  for (size_t i = 0; i < numbers.size(); ++i)
    if (i % layout->numbers != 2) largest = std::max(largest, std::abs(numbers[i]));
  const bool isFraction = layout->isBody || largest <= kMostFraction;
  std::vector<KeyPoint> list;
  for (size_t i = 0; i < numbers.size(); i += layout->numbers) {
    KeyPoint point;
    point.x = layout->isBody ? numbers[i + 1] : numbers[i];
    point.y = layout->isBody ? numbers[i] : numbers[i + 1];
    if (layout->isBody) point.score = numbers[i + 2];
    if (!isFraction) {
      point.x /= width;
      point.y /= height;
    }
    list.push_back(point);
  }
  return list;
}

}  // namespace hearth::tools
