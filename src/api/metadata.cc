// SPDX-License-Identifier: Apache-2.0
// The functions of hearth.h for what a model says about itself.
#include "api/metadata.h"

#include <cmath>

#include "api/handles.h"

using hearth::Status;
using hearth::api::guarded;
using hearth::api::nullArgument;

namespace hearth::api {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no infinity and no NaN.
Json number(float value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json numbers(const std::vector<float>& values) {
  Json list = Json::array();
  for (const float value : values) list.push_back(number(value));
  return list;
}

Json filesJson(const std::vector<tflite::AssociatedFile>& files) {
  Json list = Json::array();
  for (const tflite::AssociatedFile& file : files)
    list.push_back({{"name", file.name},
                    {"description", file.description},
                    {"type", file.type},
                    {"locale", file.locale}});
  return list;
}

Json tensorJson(const tflite::TensorMetadata& tensor) {
  Json json = {{"name", tensor.name},
               {"description", tensor.description},
               {"dimension_names", tensor.dimensionNames},
               {"content", tensor.content},
               {"color_space", tensor.colorSpace},
               {"box", nullptr},
               {"audio", nullptr},
               {"mean", numbers(tensor.mean)},
               {"std", numbers(tensor.std)},
               {"min", numbers(tensor.min)},
               {"max", numbers(tensor.max)},
               {"calibration", nullptr},
               {"score_threshold", nullptr},
               {"files", filesJson(tensor.files)}};
  if (tensor.box)
    json["box"] = {{"kind", tensor.box->kind},
                   {"order", tensor.box->order},
                   {"pixels", tensor.box->isInPixels}};
  if (tensor.audio)
    json["audio"] = {{"sample_rate", tensor.audio->sampleRate},
                     {"channels", tensor.audio->channels}};
  if (tensor.calibration)
    json["calibration"] = {{"transformation", tensor.calibration->transformation},
                           {"default_score", number(tensor.calibration->defaultScore)}};
  if (tensor.scoreThreshold) json["score_threshold"] = number(*tensor.scoreThreshold);
  return json;
}

}  // namespace

Json metadataJson(const tflite::ModelMetadata& metadata) {
  Json json = {{"name", metadata.name},
               {"description", metadata.description},
               {"version", metadata.version},
               {"author", metadata.author},
               {"license", metadata.license},
               {"inputs", Json::array()},
               {"outputs", Json::array()},
               {"files", filesJson(metadata.files)},
               {"packed", Json::array()},
               {"output_operations", metadata.outputOperations},
               {"problem", metadata.problem.empty() ? Json(nullptr) : Json(metadata.problem)}};
  for (const tflite::TensorMetadata& tensor : metadata.inputs)
    json["inputs"].push_back(tensorJson(tensor));
  for (const tflite::TensorMetadata& tensor : metadata.outputs)
    json["outputs"].push_back(tensorJson(tensor));
  for (const tflite::PackedFile& file : metadata.packed)
    json["packed"].push_back(
        {{"name", file.name},
         {"bytes", file.plainSize},
         {"problem", file.problem.empty() ? Json(nullptr) : Json(file.problem)}});
  return json;
}

}  // namespace hearth::api

extern "C" {

hearth_status hearth_model_metadata(const hearth_model* model, char** json, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (model == nullptr) return nullArgument("model");
    if (json == nullptr) return nullArgument("json");
    *json = hearth::api::copyString(
        hearth::api::metadataJson(model->file->metadata())
            .dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return {};
  });
}

hearth_status hearth_model_labels(const hearth_model* model, size_t output, const char* locale,
                                  char** labels, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (model == nullptr) return nullArgument("model");
    if (labels == nullptr) return nullArgument("labels");
    HEARTH_ASSIGN(const std::string text,
                  model->file->labels(output, locale == nullptr ? "" : locale));
    *labels = hearth::api::copyString(text);
    return {};
  });
}

hearth_status hearth_model_packed_file(const hearth_model* model, const char* name,
                                       const void** data, size_t* size, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (model == nullptr) return nullArgument("model");
    if (name == nullptr) return nullArgument("name");
    if (data == nullptr) return nullArgument("data");
    if (size == nullptr) return nullArgument("size");
    HEARTH_ASSIGN(const std::span<const uint8_t> bytes, model->file->packedFile(name));
    *data = bytes.data();
    *size = bytes.size();
    return {};
  });
}

}  // extern "C"
