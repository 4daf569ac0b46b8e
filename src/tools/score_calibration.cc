// SPDX-License-Identifier: Apache-2.0
#include "tools/score_calibration.h"

#include <charconv>
#include <cmath>

namespace hearth::tools {
namespace {

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// Takes the text up to the separator from the front.
std::string_view take(std::string_view* text, char separator) {
  const size_t end = text->find(separator);
  const std::string_view front = text->substr(0, end);
  *text = end == std::string_view::npos ? std::string_view() : text->substr(end + 1);
  return front;
}

std::optional<std::vector<double>> numbersOf(std::string_view line) {
  std::vector<double> numbers;
  while (!line.empty()) {
    const std::string_view field = trimmed(take(&line, ','));
    double number = 0;
    const auto [end, problem] = std::from_chars(field.begin(), field.end(), number);
    if (problem != std::errc() || end != field.end()) return std::nullopt;
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

ScoreCalibration ScoreCalibration::parse(std::string_view text, const std::string& transformation,
                                         double defaultScore) {
  ScoreCalibration made;
  made.defaultScore_ = defaultScore;
  if (transformation == "log") made.transformation_ = Transformation::kLog;
  if (transformation == "inverse logistic") made.transformation_ = Transformation::kInverseLogistic;
  while (!text.empty()) {
    const auto numbers = numbersOf(trimmed(take(&text, '\n')));
    std::optional<Sigmoid>& one = made.classes_.emplace_back();
    if (!numbers || numbers->size() < 3 || numbers->size() > 4) continue;
    one = {(*numbers)[0], (*numbers)[1], (*numbers)[2], std::nullopt};
    if (numbers->size() == 4) one->minScore = (*numbers)[3];
  }
  return made;
}

double ScoreCalibration::apply(size_t index, double score) const {
  if (index >= classes_.size() || !classes_[index]) return defaultScore_;
  const Sigmoid& one = *classes_[index];
  if (one.minScore && !(score > *one.minScore)) return defaultScore_;
  double transformed = score;
  if (transformation_ == Transformation::kLog) transformed = std::log(score);
  if (transformation_ == Transformation::kInverseLogistic)
    transformed = std::log(score) - std::log(1 - score);
  return one.scale / (1 + std::exp(-(one.slope * transformed + one.offset)));
}

}  // namespace hearth::tools
