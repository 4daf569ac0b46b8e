// SPDX-License-Identifier: Apache-2.0
#include "tools/detection.h"

#include <algorithm>
#include <cmath>

#include "tools/media/elements.h"

namespace hearth::tools {
namespace {

constexpr uint64_t kMaxBoxes = uint64_t{1} << 20;

std::vector<double> realNumbers(const Array& output, const TensorInfo& tensor) {
  std::vector<double> numbers = toNumbers(output);
  for (double& number : numbers) number = tensor.dequantize(number);
  return numbers;
}

bool isBoxes(const std::vector<uint64_t>& shape) {
  const size_t rank = shape.size();
  return (rank == 2 || (rank == 3 && shape[0] == 1)) && shape[rank - 1] == 4 &&
         shape[rank - 2] > 0 && shape[rank - 2] <= kMaxBoxes;
}

bool isListOf(const std::vector<uint64_t>& shape, uint64_t count) {
  return (shape.size() == 1 && shape[0] == count) ||
         (shape.size() == 2 && shape[0] == 1 && shape[1] == count);
}

bool isWhole(const std::vector<double>& numbers) {
  return std::ranges::all_of(numbers, [](double number) { return number == std::floor(number); });
}

// The two lists of a detector in the order classes, scores. Metadata tells them apart, or the names
// of TFLite_Detection_PostProcess's outputs, or else that classes are whole numbers.
void orderLists(const std::vector<TensorInfo>& infos, const ModelFacts& facts,
                const std::vector<std::vector<double>>& numbers, size_t* classes, size_t* scores) {
  const auto isClasses = [&](size_t i) {
    const std::string name = facts.name(i);
    return facts.hasValueLabels(i) || name.contains("class") || name.contains("categor");
  };
  const auto isScores = [&](size_t i) {
    return facts.name(i).contains("score");
  };
  bool isSwapped = false;
  if (isClasses(*scores) || isScores(*classes))
    isSwapped = true;
  else if (isClasses(*classes) || isScores(*scores))
    isSwapped = false;
  else if (infos[*classes].name.ends_with("PostProcess:2") &&
           infos[*scores].name.ends_with("PostProcess:1"))
    isSwapped = true;
  else
    isSwapped = !isWhole(numbers[*classes]) && isWhole(numbers[*scores]);
  if (isSwapped) std::swap(*classes, *scores);
}

Detection boxOf(const double* values, const BoxFormat& format, double width, double height) {
  const auto at = [&](size_t i) {
    return values[format.order[i]];
  };
  Detection box;
  box.left = at(0);
  box.top = at(1);
  box.right = at(2);
  box.bottom = at(3);
  if (format.kind == BoxFormat::Kind::kUpperLeft) {
    box.right += box.left;
    box.bottom += box.top;
  } else if (format.kind == BoxFormat::Kind::kCenter) {
    box.left = at(0) - at(2) / 2;
    box.right = at(0) + at(2) / 2;
    box.top = at(1) - at(3) / 2;
    box.bottom = at(1) + at(3) / 2;
  }
  if (format.isInPixels) {
    box.left /= width;
    box.right /= width;
    box.top /= height;
    box.bottom /= height;
  }
  return box;
}

}  // namespace

std::optional<Detections> detectionsOf(const std::vector<Array>& outputs,
                                       const std::vector<TensorInfo>& infos,
                                       const ModelFacts& facts, double width, double height) {
  size_t boxes = 0;
  std::optional<BoxFormat> format;
  for (; boxes < outputs.size(); ++boxes) {
    if (!isBoxes(outputs[boxes].shape)) continue;
    format = facts.boxFormat(boxes);
    if (!format && facts.isOfDetector(boxes)) format = BoxFormat();
    if (format) break;
  }
  if (!format) return std::nullopt;
  const uint64_t most = outputs[boxes].shape[outputs[boxes].shape.size() - 2];
  std::vector<std::vector<double>> numbers;
  std::vector<size_t> lists;
  std::optional<double> counted;
  for (size_t i = 0; i < outputs.size(); ++i) {
    numbers.push_back(realNumbers(outputs[i], infos[i]));
    if (i == boxes) continue;
    // With one box, the last list of one is the number.
    if (isListOf(outputs[i].shape, most) && lists.size() < 2)
      lists.push_back(i);
    else if (numbers[i].size() == 1)
      counted = numbers[i][0];
  }
  if (lists.empty() || numbers[boxes].size() != most * 4) return std::nullopt;
  size_t classes = lists.front();
  size_t scores = lists.back();
  if (lists.size() == 2) orderLists(infos, facts, numbers, &classes, &scores);

  Detections detections;
  detections.classOutput = classes;
  detections.threshold = facts.scoreThreshold(scores);
  const auto count = static_cast<uint64_t>(std::clamp(
      std::isnan(counted.value_or(0)) ? 0.0 : counted.value_or(static_cast<double>(most)), 0.0,
      static_cast<double>(most)));
  for (uint64_t i = 0; i < count; ++i) {
    Detection one = boxOf(numbers[boxes].data() + 4 * i, *format, width, height);
    const double index = lists.size() == 2 ? numbers[classes][i] : 0;
    one.index = index >= 0 && index <= UINT32_MAX ? static_cast<uint64_t>(index) : 0;
    one.score = numbers[scores][i];
    detections.found.push_back(one);
  }
  std::ranges::stable_sort(detections.found, [](const Detection& a, const Detection& b) {
    return (std::isnan(a.score) ? -1 : a.score) > (std::isnan(b.score) ? -1 : b.score);
  });
  return detections;
}

}  // namespace hearth::tools
