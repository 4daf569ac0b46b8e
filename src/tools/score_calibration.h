// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::tools {

// Makes the scores of a model's classes comparable, as TFLite's metadata says: for each class
// scale / (1 + exp(-(slope * g(score) + offset))), where g is a transformation of all scores. Value
// type.
class ScoreCalibration {
 public:
  // A line for each class: empty, or "scale,slope,offset" or "scale,slope,offset,min_score".
  // `transformation` is "identity", "log" or "inverse logistic". Lines that are no such numbers
  // count as empty.
  static ScoreCalibration parse(std::string_view text, const std::string& transformation,
                                double defaultScore);

  // A class without numbers, or whose score is not above its min_score, gets the default score.
  double apply(size_t index, double score) const;

 private:
  struct Sigmoid {
    double scale = 0;
    double slope = 0;
    double offset = 0;
    std::optional<double> minScore;
  };
  enum class Transformation { kIdentity, kLog, kInverseLogistic };

  std::vector<std::optional<Sigmoid>> classes_;
  Transformation transformation_ = Transformation::kIdentity;
  double defaultScore_ = 0;
};

}  // namespace hearth::tools
