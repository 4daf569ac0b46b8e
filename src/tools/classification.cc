// SPDX-License-Identifier: Apache-2.0
#include "tools/classification.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "base/format.h"
#include "tools/media/elements.h"
#include "tools/media/file.h"

namespace hearth::tools {
namespace {

constexpr uint64_t kMaxLabelBytes = uint64_t{16} << 20;

}  // namespace

Result<Labels> Labels::read(const std::string& path) {
  HEARTH_ASSIGN(const std::vector<uint8_t> bytes, readFile(path, kMaxLabelBytes));
  return parse(std::string(bytes.begin(), bytes.end()));
}

Labels Labels::parse(const std::string& text) {
  Labels labels;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    labels.names_.push_back(std::move(line));
  }
  return labels;
}

std::string Labels::name(uint64_t index, uint64_t classCount) const {
  const bool isShifted = names_.size() == classCount + 1 && names_.front() == "background";
  if (isShifted) ++index;
  return index < names_.size() ? names_[index] : "";
}

std::string Labels::detectedName(uint64_t index) const {
  const bool isShifted =
      !names_.empty() && (names_.front() == "???" || names_.front() == "background");
  if (isShifted) ++index;
  return index < names_.size() ? names_[index] : "";
}

std::string Labels::misfit(uint64_t classCount) const {
  size_t lines = names_.size();
  // An empty line at the end names nothing.
  while (lines > 0 && names_[lines - 1].empty()) --lines;
  if (lines == 0 || lines == classCount ||
      (lines == classCount + 1 && names_.front() == "background"))
    return "";
  return base::formatText("There are {} labels for {} classes.", lines, classCount);
}

bool isClassification(const Array& output, bool isLenient) {
  const std::vector<uint64_t>& shape = output.shape;
  if (shape.empty() || shape.back() < 2) {
    if (!isLenient) return false;
  }
  const auto longDimensions =
      std::count_if(shape.begin(), shape.end(), [](uint64_t d) { return d > 1; });
  const bool hasNoZero = std::find(shape.begin(), shape.end(), 0u) == shape.end();
  return longDimensions == 1 && hasNoZero && (isLenient || shape.size() <= 2 || shape.size() == 4);
}

std::vector<ScoredClass> topClasses(const Array& output, const TensorInfo& tensor, size_t count) {
  std::vector<double> scores = toNumbers(output);
  for (double& score : scores) score = tensor.dequantize(score);
  return topClasses(scores, count);
}

std::vector<ScoredClass> topClasses(const std::vector<double>& scores, size_t count) {
  std::vector<uint64_t> order(scores.size());
  std::iota(order.begin(), order.end(), uint64_t{0});
  count = std::min(count, order.size());
  const auto key = [&scores](uint64_t i) {
    return std::isnan(scores[i]) ? -std::numeric_limits<double>::infinity() : scores[i];
  };
  std::partial_sort(
      order.begin(), order.begin() + static_cast<ptrdiff_t>(count), order.end(),
      [&key](uint64_t a, uint64_t b) { return key(a) != key(b) ? key(a) > key(b) : a < b; });
  std::vector<ScoredClass> best;
  for (size_t i = 0; i < count; ++i) best.push_back({order[i], scores[order[i]]});
  return best;
}

}  // namespace hearth::tools
