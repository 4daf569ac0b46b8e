// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/metadata_reader.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "frontends/tflite/container/zip_directory.h"
#include "frontends/tflite/reader/file_view.h"
#include "frontends/tflite/reader/text.h"
#include "metadata_schema_generated.h"

namespace hearth::tflite {
namespace {

using Bytes = std::span<const uint8_t>;

// Labels and vocabularies have some megabytes at most.
constexpr uint64_t kMaxUnpackedBytes = uint64_t{64} << 20;
constexpr std::string_view kMetadataName = "TFLITE_METADATA";
// Real metadata has some kilobytes.
constexpr uint64_t kMaxBytes = uint64_t{16} << 20;
constexpr size_t kBytesPerTable = 8;
constexpr size_t kSpareTables = 64;
constexpr size_t kMaxDimensions = 8;

template <typename T>
using List = flatbuffers::Vector<flatbuffers::Offset<T>>;

const char* typeOf(metadata::AssociatedFileType type) {
  using enum metadata::AssociatedFileType;
  switch (type) {
    case DESCRIPTIONS:
      return "descriptions";
    case TENSOR_AXIS_LABELS:
      return "axis labels";
    case TENSOR_VALUE_LABELS:
      return "value labels";
    case TENSOR_AXIS_SCORE_CALIBRATION:
      return "score calibration";
    case VOCABULARY:
      return "vocabulary";
    case SCANN_INDEX_FILE:
      return "index";
    case UNKNOWN:
      break;
  }
  return "";
}

const char* kindOf(metadata::BoundingBoxType type) {
  using enum metadata::BoundingBoxType;
  switch (type) {
    case BOUNDARIES:
      return "boundaries";
    case UPPER_LEFT:
      return "upper left";
    case CENTER:
      return "center";
    case UNKNOWN:
      break;
  }
  return "";
}

const char* nameOf(metadata::ScoreTransformationType type) {
  if (type == metadata::ScoreTransformationType::LOG) return "log";
  return type == metadata::ScoreTransformationType::INVERSE_LOGISTIC ? "inverse logistic"
                                                                     : "identity";
}

// Reads verified tables. Lists and texts of a hostile file may be used many times over: what is
// copied is limited.
class Reader {
 public:
  explicit Reader(size_t bytes) : budget_(8 * bytes + (size_t{64} << 10)) {}

  ModelMetadata read(const metadata::ModelMetadata& source) {
    ModelMetadata model;
    model.name = text(source.name());
    model.description = text(source.description());
    model.version = text(source.version());
    model.author = text(source.author());
    model.license = text(source.license());
    model.minParserVersion = text(source.min_parser_version());
    model.files = files(source.associated_files());
    const auto* const subgraphs = source.subgraph_metadata();
    if (subgraphs == nullptr || subgraphs->size() == 0) return model;
    const metadata::SubGraphMetadata& main = *subgraphs->Get(0);
    if (model.name.empty()) model.name = text(main.name());
    if (model.description.empty()) model.description = text(main.description());
    model.inputs = tensors(main.input_tensor_metadata());
    model.outputs = tensors(main.output_tensor_metadata());
    for (AssociatedFile& file : files(main.associated_files()))
      model.files.push_back(std::move(file));
    return model;
  }

 private:
  bool take(size_t bytes) {
    if (bytes > budget_) return false;
    budget_ -= bytes;
    return true;
  }

  std::string text(const flatbuffers::String* source) {
    return source != nullptr && take(source->size()) ? cleanText(source) : std::string();
  }

  template <typename T>
  std::vector<T> numbers(const flatbuffers::Vector<T>* source) {
    if (source == nullptr || !take(source->size() * sizeof(T))) return {};
    return {source->begin(), source->end()};
  }

  std::vector<AssociatedFile> files(const List<metadata::AssociatedFile>* source) {
    std::vector<AssociatedFile> list;
    if (source == nullptr) return list;
    for (const metadata::AssociatedFile* file : *source) {
      if (!take(sizeof(AssociatedFile))) break;
      list.push_back({text(file->name()), text(file->description()), typeOf(file->type()),
                      text(file->locale())});
    }
    return list;
  }

  void addContent(const metadata::Content& source, TensorMetadata* tensor) {
    if (source.content_properties_as_FeatureProperties() != nullptr) {
      tensor->content = "feature";
    } else if (const auto* const image = source.content_properties_as_ImageProperties()) {
      tensor->content = "image";
      if (image->color_space() == metadata::ColorSpaceType::RGB) tensor->colorSpace = "RGB";
      if (image->color_space() == metadata::ColorSpaceType::GRAYSCALE)
        tensor->colorSpace = "grayscale";
    } else if (const auto* const box = source.content_properties_as_BoundingBoxProperties()) {
      tensor->content = "bounding box";
      tensor->box = {kindOf(box->type()), numbers(box->index()),
                     box->coordinate_type() == metadata::CoordinateType::PIXEL};
    } else if (const auto* const audio = source.content_properties_as_AudioProperties()) {
      tensor->content = "audio";
      tensor->audio = {audio->sample_rate(), audio->channels()};
    }
  }

  void addUnit(const metadata::ProcessUnit& source, TensorMetadata* tensor) {
    if (const auto* const normalization = source.options_as_NormalizationOptions()) {
      tensor->mean = numbers(normalization->mean());
      tensor->std = numbers(normalization->std());
    } else if (const auto* const calibration = source.options_as_ScoreCalibrationOptions()) {
      tensor->calibration = {nameOf(calibration->score_transformation()),
                             calibration->default_score()};
    } else if (const auto* const threshold = source.options_as_ScoreThresholdingOptions()) {
      tensor->scoreThreshold = threshold->global_score_threshold();
    }
  }

  TensorMetadata tensor(const metadata::TensorMetadata& source) {
    TensorMetadata tensor;
    tensor.name = text(source.name());
    tensor.description = text(source.description());
    if (const auto* const names = source.dimension_names())
      for (uint32_t i = 0; i < std::min<size_t>(names->size(), kMaxDimensions); ++i)
        tensor.dimensionNames.push_back(text(names->Get(i)));
    if (source.content() != nullptr) addContent(*source.content(), &tensor);
    if (source.process_units() != nullptr)
      for (const metadata::ProcessUnit* unit : *source.process_units())
        if (take(sizeof(*unit))) addUnit(*unit, &tensor);
    if (source.stats() != nullptr) {
      tensor.min = numbers(source.stats()->min());
      tensor.max = numbers(source.stats()->max());
    }
    tensor.files = files(source.associated_files());
    return tensor;
  }

  std::vector<TensorMetadata> tensors(const List<metadata::TensorMetadata>* source) {
    std::vector<TensorMetadata> list;
    if (source == nullptr) return list;
    for (const metadata::TensorMetadata* each : *source) {
      if (!take(sizeof(TensorMetadata))) break;
      list.push_back(tensor(*each));
    }
    return list;
  }

  size_t budget_;
};

// Whether an operator keeps the values of its first input.
bool keepsValues(const schema::OperatorCode& code) {
  using enum schema::BuiltinOperator;
  const schema::BuiltinOperator builtin = builtinCode(code);
  return builtin == DEQUANTIZE || builtin == QUANTIZE || builtin == RESHAPE || builtin == SQUEEZE ||
         builtin == EXPAND_DIMS || builtin == CAST;
}

std::vector<std::string> outputOperationsOf(const FileView& file) {
  std::vector<std::string> names;
  const schema::SubGraph& main = *file.subgraph(0);
  if (main.outputs() == nullptr) return names;
  std::map<int32_t, const schema::Operator*> makers;
  if (main.operators() != nullptr)
    for (const schema::Operator* operation : *main.operators())
      if (operation->outputs() != nullptr)
        for (const int32_t output : *operation->outputs()) makers[output] = operation;
  constexpr size_t kMaxOutputs = 1024;
  constexpr int kMaxSteps = 8;
  for (uint32_t i = 0; i < std::min<size_t>(main.outputs()->size(), kMaxOutputs); ++i) {
    int32_t tensor = main.outputs()->Get(i);
    std::string name;
    for (int step = 0; step < kMaxSteps; ++step) {
      const auto maker = makers.find(tensor);
      if (maker == makers.end()) break;
      const schema::OperatorCode* const code = file.operatorCode(maker->second->opcode_index());
      if (code == nullptr) break;
      name = operationName(*code);
      const auto* const inputs = maker->second->inputs();
      if (!keepsValues(*code) || inputs == nullptr || inputs->size() == 0) break;
      tensor = inputs->Get(0);
    }
    names.push_back(std::move(name));
  }
  return names;
}

// The metadata's buffer; empty without one.
Bytes metadataBytes(const FileView& file) {
  const auto* const entries = file.model().metadata();
  if (entries == nullptr) return {};
  for (const schema::Metadata* entry : *entries) {
    if (entry->name() == nullptr || entry->name()->string_view() != kMetadataName) continue;
    const auto range = file.buffer(entry->buffer());
    if (range && range->has_value()) return file.bytes(**range);
  }
  return {};
}

}  // namespace

ModelMetadata parseMetadata(Bytes bytes) {
  const auto damaged = [](const char* why) {
    ModelMetadata model;
    model.problem = std::string("The metadata of the model is left out: ") + why;
    return model;
  };
  if (bytes.size() > kMaxBytes) return damaged("it has more than 16 MiB.");
  // The buffers of a file need not be aligned for their own tables.
  const std::vector<uint32_t> aligned = [&] {
    std::vector<uint32_t> words((bytes.size() + sizeof(uint32_t) - 1) / sizeof(uint32_t));
    if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
    return words;
  }();
  const auto* const data = reinterpret_cast<const uint8_t*>(aligned.data());
  flatbuffers::Verifier::Options options;
  options.max_tables =
      static_cast<flatbuffers::uoffset_t>(bytes.size() / kBytesPerTable + kSpareTables);
  flatbuffers::Verifier verifier(data, bytes.size(), options);
  if (!verifier.VerifyBuffer<metadata::ModelMetadata>(nullptr)) return damaged("it is damaged.");
  return Reader(bytes.size()).read(*metadata::GetModelMetadata(data));
}

std::string packedFileProblem(const Deflated& deflated) {
  if (deflated.size <= kMaxUnpackedBytes) return "";
  return base::formatText("It has {} bytes when it is unpacked; {} are the most.", deflated.size,
                          kMaxUnpackedBytes);
}

ModelMetadata readMetadata(const FileView& file) {
  ModelMetadata model;
  if (const Bytes bytes = metadataBytes(file); !bytes.empty()) model = parseMetadata(bytes);
  model.outputOperations = outputOperationsOf(file);
  if (!endsLikeZip({file.pool()->data(), file.pool()->size()})) return model;
  auto parts = readZipDirectory({file.pool()->data(), file.pool()->size()});
  if (!parts) {
    if (model.problem.empty())
      model.problem = "The files behind the model are left out: " + parts.error().message();
    return model;
  }
  for (Part& part : *parts) {
    if (part.deflated) part.problem = packedFileProblem(*part.deflated);
    model.packed.push_back({std::move(part.name), part.offset, part.size,
                            part.deflated ? part.deflated->size : part.size,
                            std::move(part.problem)});
  }
  return model;
}

}  // namespace hearth::tflite
