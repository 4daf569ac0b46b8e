// SPDX-License-Identifier: Apache-2.0
// What a model says about itself, through hearth.h and hearth.hpp. The forms of metadata have their
// tests in frontends/tflite.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontends/tflite/testing/container_writer.h"
#include "frontends/tflite/testing/model_writer.h"
#include "hearth/hearth.hpp"
#include "metadata_schema_generated.h"

namespace hearth {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using tflite::schema::BuiltinOperator;
using tflite::schema::TensorType;
namespace metadata = tflite::metadata;
using Bytes = std::vector<uint8_t>;

Bytes bytesOf(std::string_view text) {
  return {text.begin(), text.end()};
}

tflite::ModelWriter softmax() {
  tflite::ModelWriter model;
  for (int i = 0; i < 2; ++i) model.addTensor(TensorType::FLOAT32, {1, 2});
  tflite::schema::SoftmaxOptionsT options;
  options.beta = 1;
  model.addOperator(BuiltinOperator::SOFTMAX, {0}, {1}, options);
  model.setArguments({0}, {1});
  return model;
}

// A classifier with labels in two languages, and a file behind it that bzip2 compressed.
Bytes flowers() {
  metadata::ModelMetadataT about;
  about.name = "flowers";
  auto main = std::make_unique<metadata::SubGraphMetadataT>();
  auto output = std::make_unique<metadata::TensorMetadataT>();
  output->name = "probability";
  for (const auto& [name, locale] : {std::pair{"labels.txt", "en"}, std::pair{"namen.txt", "de"}}) {
    auto file = std::make_unique<metadata::AssociatedFileT>();
    file->name = name;
    file->type = metadata::AssociatedFileType::TENSOR_AXIS_LABELS;
    file->locale = locale;
    output->associated_files.push_back(std::move(file));
  }
  main->output_tensor_metadata.push_back(std::move(output));
  about.subgraph_metadata.push_back(std::move(main));
  flatbuffers::FlatBufferBuilder builder;
  metadata::FinishModelMetadataBuffer(builder, metadata::ModelMetadata::Pack(builder, &about));

  tflite::ModelWriter model = softmax();
  auto buffer = std::make_unique<tflite::schema::BufferT>();
  buffer->data.assign(builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize());
  model.model.buffers.push_back(std::move(buffer));
  auto entry = std::make_unique<tflite::schema::MetadataT>();
  entry->name = "TFLITE_METADATA";
  entry->buffer = static_cast<uint32_t>(model.model.buffers.size()) - 1;
  model.model.metadata.push_back(std::move(entry));
  Bytes bytes = model.write();
  const Bytes archive = tflite::zipOf({{"labels.txt", bytesOf("rose\ntulip\n")},
                                       {"namen.txt", bytesOf("Rose\nTulpe\n")},
                                       {"notes.txt", bytesOf("\x03"), 12}},
                                      {.offset = bytes.size()});
  bytes.insert(bytes.end(), archive.begin(), archive.end());
  return bytes;
}

// The status of a call, whose error is freed; `message` takes its sentence.
template <typename Call>
hearth_status statusOf(const Call& call, std::string* message = nullptr) {
  hearth_error* error = nullptr;
  const hearth_status status = call(&error);
  EXPECT_EQ(status == HEARTH_OK, error == nullptr);
  if (error != nullptr && message != nullptr) *message = hearth_error_message(error);
  hearth_error_free(error);
  return status;
}

class MetadataTest : public testing::Test {
 protected:
  void load(const Bytes& bytes) {
    ASSERT_EQ(hearth_model_load_memory(bytes.data(), bytes.size(), &model_, nullptr), HEARTH_OK);
  }
  void TearDown() override { hearth_model_free(model_); }

  hearth_status labels(size_t output, const char* locale, std::string* text) {
    char* found = nullptr;
    const hearth_status status = statusOf(
        [&](hearth_error** error) {
          return hearth_model_labels(model_, output, locale, &found, error);
        },
        text);
    if (status == HEARTH_OK) *text = found;
    hearth_string_free(found);
    return status;
  }

  hearth_status packedFile(const char* name, std::string* text) {
    const void* data = nullptr;
    size_t size = 0;
    const hearth_status status = statusOf(
        [&](hearth_error** error) {
          return hearth_model_packed_file(model_, name, &data, &size, error);
        },
        text);
    if (status == HEARTH_OK) text->assign(static_cast<const char*>(data), size);
    return status;
  }

  hearth_model* model_ = nullptr;
};

TEST_F(MetadataTest, IsToldAsJson) {
  load(flowers());
  char* text = nullptr;
  ASSERT_EQ(hearth_model_metadata(model_, &text, nullptr), HEARTH_OK);
  const auto json = nlohmann::json::parse(text);
  hearth_string_free(text);
  EXPECT_EQ(json["name"], "flowers");
  ASSERT_EQ(json["outputs"].size(), 1u);
  EXPECT_EQ(json["outputs"][0]["name"], "probability");
  EXPECT_EQ(json["outputs"][0]["files"][1]["locale"], "de");
  EXPECT_EQ(json["packed"].size(), 3u);
}

TEST_F(MetadataTest, LabelsAreThoseOfALanguage) {
  load(flowers());
  std::string text;
  EXPECT_EQ(labels(0, nullptr, &text), HEARTH_OK);
  EXPECT_EQ(text, "rose\ntulip\n");
  EXPECT_EQ(labels(0, "de", &text), HEARTH_OK);
  EXPECT_EQ(text, "Rose\nTulpe\n");
  EXPECT_EQ(labels(0, "fr", &text), HEARTH_NOT_FOUND);
  EXPECT_THAT(text, HasSubstr("en, de"));
  EXPECT_EQ(labels(1, nullptr, &text), HEARTH_NOT_FOUND);
}

TEST_F(MetadataTest, PackedFilesAreBytesOfTheModel) {
  load(flowers());
  std::string text;
  EXPECT_EQ(packedFile("namen.txt", &text), HEARTH_OK);
  EXPECT_EQ(text, "Rose\nTulpe\n");
  EXPECT_EQ(packedFile("x", &text), HEARTH_NOT_FOUND);
  EXPECT_THAT(text, HasSubstr("labels.txt"));
  EXPECT_EQ(packedFile("notes.txt", &text), HEARTH_UNSUPPORTED);
  EXPECT_THAT(text, HasSubstr("compressed"));
}

TEST_F(MetadataTest, AModelWithoutHasNone) {
  load(softmax().write());
  char* json = nullptr;
  ASSERT_EQ(hearth_model_metadata(model_, &json, nullptr), HEARTH_OK);
  EXPECT_EQ(nlohmann::json::parse(json)["name"], "");
  hearth_string_free(json);
  std::string text;
  EXPECT_EQ(labels(0, nullptr, &text), HEARTH_NOT_FOUND);
  EXPECT_EQ(packedFile("labels.txt", &text), HEARTH_NOT_FOUND);
}

TEST_F(MetadataTest, NullArgumentsAreErrors) {
  load(flowers());
  const void* data = nullptr;
  size_t size = 0;
  char* text = nullptr;
  for (const hearth_status status :
       {statusOf([&](auto error) { return hearth_model_metadata(nullptr, &text, error); }),
        statusOf([&](auto error) { return hearth_model_metadata(model_, nullptr, error); }),
        statusOf([&](auto error) { return hearth_model_labels(nullptr, 0, "", &text, error); }),
        statusOf([&](auto error) { return hearth_model_labels(model_, 0, "", nullptr, error); }),
        statusOf([&](auto error) {
          return hearth_model_packed_file(model_, nullptr, &data, &size, error);
        }),
        statusOf([&](auto error) {
          return hearth_model_packed_file(model_, "x", nullptr, &size, error);
        }),
        statusOf([&](auto error) {
          return hearth_model_packed_file(model_, "x", &data, nullptr, error);
        })})
    EXPECT_EQ(status, HEARTH_UNEXPECTED_NULL);
}

TEST_F(MetadataTest, IsThereInCpp) {
  const Bytes bytes = flowers();
  const Model model(bytes.data(), bytes.size());
  EXPECT_THAT(model.metadata(), HasSubstr("flowers"));
  EXPECT_THAT(model.labels(), ElementsAre("rose", "tulip"));
  EXPECT_THAT(model.labels(0, "de"), ElementsAre("Rose", "Tulpe"));
  EXPECT_EQ(model.packedFile("labels.txt"), "rose\ntulip\n");
  EXPECT_THROW(model.packedFile("x"), Exception);
}

}  // namespace
}  // namespace hearth
