// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/metadata_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "frontends/tflite/model_file.h"
#include "frontends/tflite/testing/container_writer.h"
#include "frontends/tflite/testing/model_writer.h"
#include "metadata_schema_generated.h"

namespace hearth::tflite {
namespace {

using schema::BuiltinOperator;
using schema::TensorType;
using testing::ElementsAre;
using testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

std::unique_ptr<metadata::AssociatedFileT> file(const std::string& name,
                                                metadata::AssociatedFileType type,
                                                const std::string& locale) {
  auto made = std::make_unique<metadata::AssociatedFileT>();
  made->name = name;
  made->type = type;
  made->locale = locale;
  return made;
}

template <typename Options>
std::unique_ptr<metadata::ProcessUnitT> unit(Options options) {
  auto made = std::make_unique<metadata::ProcessUnitT>();
  made->options.Set(std::move(options));
  return made;
}

Bytes packed(const metadata::ModelMetadataT& model) {
  flatbuffers::FlatBufferBuilder builder;
  metadata::FinishModelMetadataBuffer(builder, metadata::ModelMetadata::Pack(builder, &model));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

metadata::ModelMetadataT classifier() {
  metadata::ModelMetadataT model;
  model.name = "flowers";
  model.author = "A. Botanist";
  model.license = "Apache-2.0";
  auto main = std::make_unique<metadata::SubGraphMetadataT>();
  auto input = std::make_unique<metadata::TensorMetadataT>();
  input->name = "image";
  input->content = std::make_unique<metadata::ContentT>();
  metadata::ImagePropertiesT image;
  image.color_space = metadata::ColorSpaceType::RGB;
  input->content->content_properties.Set(std::move(image));
  metadata::NormalizationOptionsT normalization;
  normalization.mean = {127.5f};
  normalization.std = {128.0f};
  input->process_units.push_back(unit(std::move(normalization)));
  main->input_tensor_metadata.push_back(std::move(input));
  auto output = std::make_unique<metadata::TensorMetadataT>();
  output->name = "probability";
  metadata::ScoreThresholdingOptionsT threshold;
  threshold.global_score_threshold = 0.25f;
  output->process_units.push_back(unit(threshold));
  using enum metadata::AssociatedFileType;
  output->associated_files.push_back(file("labels.txt", TENSOR_AXIS_LABELS, "en-US"));
  output->associated_files.push_back(file("namen.txt", TENSOR_AXIS_LABELS, "de"));
  main->output_tensor_metadata.push_back(std::move(output));
  model.subgraph_metadata.push_back(std::move(main));
  return model;
}

// A model of RESHAPE behind SOFTMAX, with metadata.
ModelWriter described(Bytes content) {
  ModelWriter model;
  for (int i = 0; i < 3; ++i) model.addTensor(TensorType::FLOAT32, {1, 2});
  schema::SoftmaxOptionsT softmax;
  softmax.beta = 1;
  model.addOperator(BuiltinOperator::SOFTMAX, {0}, {1}, softmax);
  schema::ReshapeOptionsT reshape;
  reshape.new_shape = {1, 2};
  model.addOperator(BuiltinOperator::RESHAPE, {1}, {2}, reshape);
  model.setArguments({0}, {2});
  auto buffer = std::make_unique<schema::BufferT>();
  buffer->data = std::move(content);
  model.model.buffers.push_back(std::move(buffer));
  auto entry = std::make_unique<schema::MetadataT>();
  entry->name = "TFLITE_METADATA";
  entry->buffer = static_cast<uint32_t>(model.model.buffers.size()) - 1;
  model.model.metadata.push_back(std::move(entry));
  return model;
}

// The model with files behind it, as in the archives that the metadata's own tools append.
Bytes withFiles(Bytes model, const std::vector<ZipMember>& members) {
  const Bytes archive = zipOf(members, {.offset = model.size()});
  model.insert(model.end(), archive.begin(), archive.end());
  return model;
}

Bytes bytesOf(const std::string& text) {
  return {text.begin(), text.end()};
}

TEST(MetadataReader, ReadsWhatTheModelSays) {
  const Bytes bytes = withFiles(
      described(packed(classifier())).write(),
      {{"labels.txt", bytesOf("rose\ntulip\n")}, {"namen.txt", bytesOf("Rose\nTulpe\n")}});
  const auto opened = ModelFile::fromPool(poolOf(bytes));
  ASSERT_TRUE(opened) << opened.error().toString();
  const ModelMetadata model = (*opened)->metadata();
  EXPECT_EQ(model.problem, "");
  EXPECT_EQ(model.name, "flowers");
  EXPECT_EQ(model.author, "A. Botanist");
  ASSERT_EQ(model.inputs.size(), 1u);
  EXPECT_EQ(model.inputs[0].content, "image");
  EXPECT_EQ(model.inputs[0].colorSpace, "RGB");
  EXPECT_THAT(model.inputs[0].mean, ElementsAre(127.5f));
  EXPECT_THAT(model.inputs[0].std, ElementsAre(128.0f));
  ASSERT_EQ(model.outputs.size(), 1u);
  EXPECT_EQ(model.outputs[0].scoreThreshold, 0.25f);
  EXPECT_EQ(model.outputs[0].files[1].locale, "de");
  ASSERT_EQ(model.packed.size(), 2u);
  EXPECT_EQ(model.packed[0].size, 11u);
  EXPECT_THAT(model.outputOperations, ElementsAre("SOFTMAX"));
  EXPECT_EQ((*opened)->labels(0, ""), "rose\ntulip\n");
  EXPECT_EQ((*opened)->labels(0, "en"), "rose\ntulip\n");
  EXPECT_EQ((*opened)->labels(0, "de-AT"), "Rose\nTulpe\n");
  EXPECT_EQ((*opened)->labels(0, "fr").error().message(),
            "Output 0 has no labels in the language \"fr\"; the languages are: en-US, de.");
  EXPECT_EQ((*opened)->labels(1, "").error().message(), "The model has no labels for output 1.");
  EXPECT_EQ((*opened)->packedFile("x").error().message(),
            "There is no file \"x\" behind the model; there are: labels.txt, namen.txt.");
}

TEST(MetadataReader, DamageCostsTheMetadataAndNotTheModel) {
  const Bytes whole = packed(classifier());
  for (size_t size = 0; size < whole.size(); ++size)
    parseMetadata({whole.data(), size});  // reads nothing behind its end
  for (size_t at = 0; at < whole.size(); ++at) {
    Bytes damaged = whole;
    damaged[at] ^= 0xff;
    parseMetadata(damaged);
  }
  const auto opened = ModelFile::fromPool(poolOf(described({1, 2, 3}).write()));
  ASSERT_TRUE(opened);
  EXPECT_THAT((*opened)->metadata().problem, HasSubstr("damaged"));
  EXPECT_TRUE((*opened)->importSubgraph(0));
}

TEST(MetadataReader, WorkIsProportionalToTheBytes) {
  // A thousand outputs that are one table, with a long list of numbers.
  flatbuffers::FlatBufferBuilder builder;
  const auto numbers = builder.CreateVector(std::vector<float>(10'000));
  const auto options = metadata::CreateNormalizationOptions(builder, numbers, numbers);
  const auto unit = metadata::CreateProcessUnit(
      builder, metadata::ProcessUnitOptions::NormalizationOptions, options.Union());
  const auto units = builder.CreateVector(std::vector(1, unit));
  metadata::TensorMetadataBuilder tensor(builder);
  tensor.add_process_units(units);
  const auto outputs = builder.CreateVector(std::vector(1000, tensor.Finish()));
  metadata::SubGraphMetadataBuilder graph(builder);
  graph.add_output_tensor_metadata(outputs);
  const auto graphs = builder.CreateVector(std::vector(1, graph.Finish()));
  metadata::ModelMetadataBuilder root(builder);
  root.add_subgraph_metadata(graphs);
  metadata::FinishModelMetadataBuffer(builder, root.Finish());
  const ModelMetadata model = parseMetadata({builder.GetBufferPointer(), builder.GetSize()});
  size_t copied = 0;
  for (const TensorMetadata& each : model.outputs) copied += each.mean.size() + each.std.size();
  EXPECT_LE(copied * sizeof(float), 8 * builder.GetSize() + (size_t{64} << 10));
}

// Five lines, "rose" and "tulip" in turn, and what deflating makes of them.
const std::string kLines = "rose\ntulip\nrose\ntulip\nrose\n";
const Bytes kDeflatedLines = {0x2b, 0xca, 0x2f, 0x4e, 0xe5, 0x2a, 0x29, 0xcd,
                              0xc9, 0x2c, 0xe0, 0x2a, 0x42, 0x63, 0x02, 0x00};
constexpr uint32_t kCrcOfLines = 0x53272a69;

ZipMember deflatedLabels() {
  return {.name = "labels.txt",
          .bytes = kDeflatedLines,
          .method = 8,
          .plainSize = static_cast<uint32_t>(kLines.size()),
          .crc = kCrcOfLines};
}

Result<std::string> labelsBehind(const ZipMember& member, const ZipOptions& options = {}) {
  Bytes bytes = described(packed(classifier())).write();
  const Bytes archive = zipOf({member}, {.isZip64 = options.isZip64, .offset = bytes.size()});
  bytes.insert(bytes.end(), archive.begin(), archive.end());
  HEARTH_ASSIGN(const auto opened, ModelFile::fromPool(poolOf(bytes)));
  HEARTH_ASSIGN(const std::string first, opened->labels(0, ""));
  HEARTH_ASSIGN(const std::span<const uint8_t> again, opened->packedFile("labels.txt"));
  EXPECT_EQ(first, std::string(again.begin(), again.end()));
  const ModelMetadata model = opened->metadata();
  EXPECT_EQ(model.packed.at(0).plainSize, first.size());
  EXPECT_EQ(model.packed.at(0).problem, "");
  return first;
}

TEST(MetadataReader, DeflatedFilesAreUnpacked) {
  EXPECT_EQ(labelsBehind(deflatedLabels()), kLines);
  EXPECT_EQ(labelsBehind(deflatedLabels(), {.isZip64 = true}), kLines);
}

TEST(MetadataReader, DamagedDeflatedFilesAreRefused) {
  const auto errorWith = [](auto change) {
    ZipMember member = deflatedLabels();
    change(member);
    const auto labels = labelsBehind(member);
    return labels ? "read" : labels.error().toString();
  };
  EXPECT_THAT(errorWith([](ZipMember& member) { member.crc ^= 1; }), HasSubstr("checksum"));
  for (const uint32_t size : {0u, 26u, 28u, 16'000u})
    EXPECT_THAT(errorWith([&](ZipMember& member) { member.plainSize = size; }),
                HasSubstr("do not hold"));
  EXPECT_THAT(errorWith([&](ZipMember& member) { member.plainSize = 60u << 20; }),
              HasSubstr("cannot hold"));
  EXPECT_THAT(errorWith([&](ZipMember& member) { member.plainSize = UINT32_MAX - 1; }),
              HasSubstr("are the most"));
  EXPECT_THAT(errorWith([&](ZipMember& member) { member.flags = 1; }), HasSubstr("encrypted"));
  // The last byte has no more than the rest of the end code, all zeros.
  for (size_t size = 0; size + 1 < kDeflatedLines.size(); ++size)
    EXPECT_NE(errorWith([&](ZipMember& member) { member.bytes.resize(size); }), "read") << size;
}

TEST(MetadataReader, CompressedFilesSaySo) {
  const Bytes bytes =
      withFiles(described(packed(classifier())).write(), {{"labels.txt", bytesOf("xxxx"), 12}});
  const auto opened = ModelFile::fromPool(poolOf(bytes));
  ASSERT_TRUE(opened);
  EXPECT_THAT((*opened)->metadata().packed[0].problem, HasSubstr("compressed"));
  EXPECT_EQ((*opened)->labels(0, "").error().code(), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace hearth::tflite
