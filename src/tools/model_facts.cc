// SPDX-License-Identifier: Apache-2.0
#include "tools/model_facts.h"

#include <algorithm>
#include <utility>

#include "base/immortal.h"

namespace hearth::tools {
namespace {

using Json = nlohmann::ordered_json;

bool hasFile(const Json& tensor, const char* type) {
  return std::ranges::any_of(tensor["files"],
                             [type](const Json& file) { return file["type"] == type; });
}

std::optional<ScoreCalibration> calibrationOf(const Model& model, const Json& tensor) {
  if (tensor["calibration"].is_null()) return std::nullopt;
  for (const Json& file : tensor["files"]) {
    if (file["type"] != "score calibration") continue;
    const Json& score = tensor["calibration"]["default_score"];
    try {
      return ScoreCalibration::parse(model.packedFile(file["name"].get<std::string>()),
                                     tensor["calibration"]["transformation"].get<std::string>(),
                                     score.is_null() ? 0.0 : score.get<double>());
    } catch (const Exception&) {  // the scores are shown as they are
      return std::nullopt;
    }
  }
  return std::nullopt;
}

// Labels that cannot be read are missing, unless somebody asked for their language.
Labels labelsOf(const Model& model, size_t output, const std::string& locale) {
  try {
    return Labels(model.labels(output, locale));
  } catch (const Exception&) {
    if (!locale.empty()) throw;
    return {};
  }
}

// Three values of a list that has one for all channels or one for each.
std::optional<std::array<double, 3>> threeOf(const Json& list) {
  if (list.size() != 1 && list.size() != 3) return std::nullopt;
  std::array<double, 3> values{};
  for (size_t i = 0; i < values.size(); ++i) {
    const Json& value = list[list.size() == 1 ? 0 : i];
    if (value.is_null()) return std::nullopt;
    values[i] = value.get<double>();
  }
  return values;
}

}  // namespace

ModelFacts::ModelFacts(const Model& model, const std::string& locale, std::vector<size_t> places)
    : places_(std::move(places)), metadata_(Json::parse(model.metadata())) {
  for (size_t i = 0; i < places_.size(); ++i) {
    const Json* const tensor = output(i);
    const bool hasLabels =
        tensor != nullptr && (hasFile(*tensor, "axis labels") || hasFile(*tensor, "value labels"));
    labels_.push_back(hasLabels ? labelsOf(model, places_[i], locale) : Labels());
    calibrations_.push_back(tensor == nullptr ? std::nullopt : calibrationOf(model, *tensor));
  }
}

const Json* ModelFacts::input(size_t index) const {
  if (metadata_.is_null() || index >= metadata_["inputs"].size()) return nullptr;
  return &metadata_["inputs"][index];
}

const Json* ModelFacts::output(size_t index) const {
  if (metadata_.is_null() || index >= places_.size() ||
      places_[index] >= metadata_["outputs"].size())
    return nullptr;
  return &metadata_["outputs"][places_[index]];
}

std::optional<Normalization> ModelFacts::normalization(size_t input,
                                                       const TensorInfo& tensor) const {
  const Json* const found = this->input(input);
  const bool isReal = tensor.type == HEARTH_TYPE_FLOAT32 || tensor.type == HEARTH_TYPE_FLOAT16;
  if (found == nullptr || !isReal) return std::nullopt;
  const auto mean = threeOf((*found)["mean"]);
  const auto std = threeOf((*found)["std"]);
  if (!mean || !std || std::ranges::find(*std, 0.0) != std->end()) return std::nullopt;
  return Normalization{*mean, *std};
}

std::optional<uint32_t> ModelFacts::sampleRate(size_t input) const {
  const Json* const found = this->input(input);
  if (found == nullptr || (*found)["audio"].is_null()) return std::nullopt;
  const auto rate = (*found)["audio"]["sample_rate"].get<uint32_t>();
  return rate == 0 ? std::nullopt : std::optional(rate);
}

const Labels& ModelFacts::labels(size_t output) const {
  static constinit base::Immortal<Labels> none;
  return output < labels_.size() ? labels_[output] : none.get();
}

const ScoreCalibration* ModelFacts::calibration(size_t output) const {
  return output < calibrations_.size() && calibrations_[output] ? &*calibrations_[output] : nullptr;
}

std::optional<double> ModelFacts::scoreThreshold(size_t output) const {
  const Json* const found = this->output(output);
  if (found == nullptr || (*found)["score_threshold"].is_null()) return std::nullopt;
  return (*found)["score_threshold"].get<double>();
}

std::string ModelFacts::operation(size_t output) const {
  if (metadata_.is_null() || output >= places_.size()) return "";
  const Json& operations = metadata_["output_operations"];
  return places_[output] < operations.size() ? operations[places_[output]].get<std::string>() : "";
}

bool ModelFacts::hasScores(size_t output) const {
  const Json* const found = this->output(output);
  if (found != nullptr && (hasFile(*found, "axis labels") || hasFile(*found, "score calibration")))
    return true;
  const std::string operation = this->operation(output);
  return operation == "SOFTMAX" || operation == "LOGISTIC" || operation == "LOG_SOFTMAX";
}

bool ModelFacts::isOfDetector(size_t output) const {
  return operation(output) == "TFLite_Detection_PostProcess";
}

std::optional<BoxFormat> ModelFacts::boxFormat(size_t output) const {
  const Json* const found = this->output(output);
  if (found == nullptr || (*found)["box"].is_null()) return std::nullopt;
  const Json& box = (*found)["box"];
  BoxFormat format;
  format.order = {0, 1, 2, 3};
  if (box["kind"] == "upper left") format.kind = BoxFormat::Kind::kUpperLeft;
  if (box["kind"] == "center") format.kind = BoxFormat::Kind::kCenter;
  format.isInPixels = box["pixels"].get<bool>();
  if (box["order"].size() == format.order.size())
    for (size_t i = 0; i < format.order.size(); ++i) {
      const auto place = box["order"][i].get<uint64_t>();
      if (place >= format.order.size()) return std::nullopt;
      format.order[i] = place;
    }
  return format;
}

std::string ModelFacts::name(size_t output) const {
  const Json* const found = this->output(output);
  if (found == nullptr) return "";
  auto name = (*found)["name"].get<std::string>();
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return name;
}

bool ModelFacts::hasValueLabels(size_t output) const {
  const Json* const found = this->output(output);
  return found != nullptr && hasFile(*found, "value labels");
}

}  // namespace hearth::tools
