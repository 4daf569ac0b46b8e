// SPDX-License-Identifier: Apache-2.0
// What a model says about its inputs and outputs, as `hearth run` uses it.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "hearth/hearth.hpp"
#include "tools/classification.h"
#include "tools/media/picture_tensor.h"
#include "tools/score_calibration.h"

namespace hearth::tools {

// How the four numbers of a detector's box are meant.
struct BoxFormat {
  enum class Kind { kBoundaries, kUpperLeft, kCenter };
  Kind kind = Kind::kBoundaries;
  std::array<size_t, 4> order{1, 0, 3, 2};  // where left, top, right and bottom are, for instance
  bool isInPixels = false;                  // of the input; else fractions of it
};

// From TFLite's metadata and from the operators that compute the outputs. Value type.
class ModelFacts {
 public:
  // Nothing is known.
  ModelFacts() = default;
  // Reads the facts of a model's first signature, with labels in the language `locale` (empty = the
  // first ones). Output i of the following functions is the one that the signature has at
  // `places[i]`. Throws Exception if there are labels, but none in that language.
  ModelFacts(const Model& model, const std::string& locale, std::vector<size_t> places);

  // For pictures in float tensors; 8-bit tensors take the pixels.
  std::optional<Normalization> normalization(size_t input, const TensorInfo& tensor) const;
  std::optional<uint32_t> sampleRate(size_t input) const;

  const Labels& labels(size_t output) const;
  const ScoreCalibration* calibration(size_t output) const;
  std::optional<double> scoreThreshold(size_t output) const;
  // Whether the values are scores of classes.
  bool hasScores(size_t output) const;
  // Whether nothing is known of what the values are.
  bool isUnknown() const { return metadata_.is_null(); }
  // Whether the operator TFLite_Detection_PostProcess computes it.
  bool isOfDetector(size_t output) const;
  // Of an output that holds boxes by the metadata.
  std::optional<BoxFormat> boxFormat(size_t output) const;
  // The name in the metadata, in lower case; empty without one.
  std::string name(size_t output) const;
  bool hasValueLabels(size_t output) const;

 private:
  std::string operation(size_t output) const;
  const nlohmann::ordered_json* input(size_t index) const;
  const nlohmann::ordered_json* output(size_t index) const;

  std::vector<size_t> places_;
  nlohmann::ordered_json metadata_;
  std::vector<Labels> labels_;
  std::vector<std::optional<ScoreCalibration>> calibrations_;
};

}  // namespace hearth::tools
