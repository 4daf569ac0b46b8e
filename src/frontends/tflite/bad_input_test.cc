// SPDX-License-Identifier: Apache-2.0
// Damaged and hostile files: an error in one sentence, no crash, bounded memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "frontends/tflite/model_file.h"
#include "frontends/tflite/testing/model_writer.h"
#include "frontends/tflite/testing/sample_models.h"
#include "frontends/tflite/testing/sample_operator.h"
#include "ops/operation.h"

namespace hearth::tflite {
namespace {

using schema::BuiltinOperator;
using schema::TensorType;
using testing::HasSubstr;

// Calls every function that takes a file. The bytes have their exact size, so that a sanitizer
// detects reads past their end.
std::string exercise(const std::vector<uint8_t>& bytes) {
  const auto file = ModelFile::fromPool(memory::Pool::borrowed(bytes.data(), bytes.size()));
  if (!file) return file.error().message();
  const ModelSummary summary = (*file)->summary();
  EXPECT_EQ(summary.subgraphs.size(), (*file)->subgraphCount());
  std::string message = "imported";
  for (const std::string& key : (*file)->signatureKeys()) {
    const auto imported = (*file)->importSignature(key);
    if (!imported) message = imported.error().message();
  }
  for (size_t i = 0; i < (*file)->subgraphCount() && i < 4; ++i) {
    const auto imported = (*file)->importSubgraph(i);
    if (!imported) {
      message = imported.error().message();
      continue;
    }
    EXPECT_TRUE(graph::validate(*imported->model));
    EXPECT_EQ(imported->model->main().inputs.size(),
              imported->inputs.size() + imported->states.size());
    EXPECT_EQ(imported->model->main().outputs.size(),
              imported->outputs.size() + imported->states.size());
  }
  return message;
}

std::string exercise(const ModelWriter& writer) {
  return exercise(writer.write());
}

// The sample models, and the smaller ones of the shared models if they are there.
std::vector<std::vector<uint8_t>> victims() {
  std::vector<std::vector<uint8_t>> files;
  registerSampleOperator();
  for (SampleModel& sample : sampleModels()) files.push_back(std::move(sample.bytes));
  if (const char* folder = std::getenv("HEARTH_TEST_DATA")) {
    for (const char* name : {"split_concat", "keras_lstm_mnist_ptq", "micro_speech_quantized",
                             "audio_preprocessor_int8"}) {
      std::ifstream stream(std::string(folder) + "/data/models/" + name + ".tflite",
                           std::ios::binary);
      files.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
    }
  }
  return files;
}

ModelWriter reluModel() {
  ModelWriter model;
  model.addTensor(TensorType::FLOAT32, {2});
  model.addTensor(TensorType::FLOAT32, {2});
  model.addOperator(BuiltinOperator::RELU, {0}, {1});
  model.setArguments({0}, {1});
  return model;
}

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::vector<uint8_t>& bytes) {
    path_ = testing::TempDir() + "/hearth_bad_input_" + std::to_string(::getpid()) + ".tflite";
    std::ofstream stream(path_, std::ios::binary);
    stream.write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(BadInput, SamplesAreGood) {
  registerSampleOperator();
  for (const SampleModel& sample : sampleModels()) {
    EXPECT_EQ(exercise(sample.bytes), "imported") << sample.name;
    EXPECT_LT(sample.bytes.size(), 2048u) << sample.name;
    const auto file =
        ModelFile::fromPool(memory::Pool::borrowed(sample.bytes.data(), sample.bytes.size()));
    ASSERT_TRUE(file) << sample.name;
    const auto imported = (*file)->importSubgraph(0);
    ASSERT_TRUE(imported) << sample.name;
    const Status valid = ops::validateOperations(*imported->model);
    EXPECT_TRUE(valid) << sample.name << ": " << valid.error().toString();
  }
}

TEST(BadInput, MissingEmptyAndForeignFiles) {
  const auto missing = ModelFile::open("/nowhere/model.tflite");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message(), HasSubstr("/nowhere/model.tflite"));

  const TemporaryFile empty({});
  const auto nothing = ModelFile::open(empty.path());
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code(), ErrorCode::kBadData);
  EXPECT_THAT(nothing.error().message(), HasSubstr("empty"));

  EXPECT_FALSE(ModelFile::open(testing::TempDir()));

  const std::string text = "This is not a model, but a long enough text about one.";
  const TemporaryFile foreign(std::vector<uint8_t>(text.begin(), text.end()));
  const auto other = ModelFile::open(foreign.path());
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), ErrorCode::kBadData);
  EXPECT_THAT(other.error().toString(), HasSubstr("TFL3"));
  EXPECT_THAT(other.error().toString(), HasSubstr(foreign.path()));

  const TemporaryFile good(reluModel().write());
  EXPECT_TRUE(ModelFile::open(good.path()));
}

TEST(BadInput, ForeignFilesAreNamed) {
  using namespace std::string_literals;
  struct {
    std::string content;
    std::string text;
  } const cases[] = {
      {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 132735\n",
       "git lfs pull"},
      {"\n<!DOCTYPE html>\n<html><body>404</body></html>", "web page (HTML)"},
      {"\xef\xbb\xbf<HTML><head></head></HTML>", "web page (HTML)"},
      {"{\"error\": \"not found\"}", "begins with \"{\"error\": \"not found\"}\""},
      {std::string(70, 'a') + "\xc3\xa9", std::string(60, 'a') + "…"},
      {"\x08\x07\x12\x07pytorch\x1a\x05", "ONNX"},
      {"\x08\x08:\x90\x02\x12\x07", "ONNX"},
      {"\x08\x01\x12\xa0\x01\x0a\x05saved", "SavedModel"},
      {"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0"s, "HDF5"},
      {"GGUF\x03\0\0\0\x23\x01\0\0"s, "GGUF"},
      {"\x1c\0\0\0ET12\0\0\0\0\0\0\0\0"s, "ExecuTorch"},
      {"\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j"s, "PyTorch"},
      {"\x10\0\0\0\0\0\0\0{\"a\":{\"dtype\":"s, "safetensors"},
      {"\x1f\x8b\x08\0\0\0\0\0"s, "gzip"},
      {std::string(300, '\0'), "zeros"},
      {"\x1c\0\0\0TFL3\0\0\0"s, "cut off"},
  };
  for (const auto& each : cases) {
    const std::vector<uint8_t> bytes(each.content.begin(), each.content.end());
    EXPECT_THAT(exercise(bytes), HasSubstr(each.text));
    // No cut reads behind its end.
    for (size_t size = 0; size < bytes.size(); ++size)
      EXPECT_NE(exercise({bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size)}),
                "imported");
  }
}

TEST(BadInput, ForeignFoldersAreNamed) {
  const auto folder = ModelFile::open(testing::TempDir());
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code(), ErrorCode::kBadData);
  EXPECT_THAT(folder.error().message(), HasSubstr("is a folder"));
  const std::string path = testing::TempDir() + "/saved_model_" + std::to_string(::getpid());
  std::filesystem::create_directory(path);
  std::ofstream(path + "/saved_model.pb") << "x";
  const auto saved = ModelFile::open(path);
  std::filesystem::remove_all(path);
  ASSERT_FALSE(saved);
  EXPECT_THAT(saved.error().message(), HasSubstr("from_saved_model"));
}

TEST(BadInput, WrongIdentifierAndVersion) {
  std::vector<uint8_t> bytes = reluModel().write();
  bytes[7] = '2';
  EXPECT_THAT(exercise(bytes), HasSubstr("TFL3"));
  ModelWriter model = reluModel();
  model.model.version = 7;
  EXPECT_THAT(exercise(model), HasSubstr("format version 7"));
  model = reluModel();
  model.model.subgraphs.clear();
  EXPECT_THAT(exercise(model), HasSubstr("no subgraph"));
}

TEST(BadInput, Truncations) {
  for (const std::vector<uint8_t>& whole : victims()) {
    const size_t step = std::max<size_t>(whole.size() / 400, 1);
    for (size_t length = 0; length < whole.size(); length += step) {
      const std::vector<uint8_t> cut(whole.begin(), whole.begin() + length);
      // Some cuts lose only the padding at the end.
      if (length + 64 < whole.size()) {
        EXPECT_NE(exercise(cut), "imported") << length;
      } else {
        exercise(cut);
      }
    }
  }
}

TEST(BadInput, RandomDamage) {
  std::mt19937 random(20240917);
  const auto files = victims();
  for (int round = 0; round < 6000; ++round) {
    std::vector<uint8_t> bytes = files[round % files.size()];
    const size_t edits = 1 + random() % 4;
    for (size_t i = 0; i < edits; ++i) {
      const size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] ^= static_cast<uint8_t>(1u << random() % 8);
          break;
        case 1:
          bytes[at] = static_cast<uint8_t>(random());
          break;
        case 2:
          bytes[at] = 0xFF;
          break;
        default: {
          const uint32_t word = random() % 2 == 0 ? random() : 0x7FFFFFFFu;
          std::memcpy(&bytes[at / 4 * 4], &word, std::min<size_t>(4, bytes.size() - at / 4 * 4));
        }
      }
    }
    exercise(bytes);
  }
}

TEST(BadInput, HostileIndices) {
  for (const int32_t index :
       {-2, 2, 1 << 20, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()}) {
    ModelWriter model = reluModel();
    model.subgraph().operators[0]->inputs = {index};
    EXPECT_THAT(exercise(model), HasSubstr("reads tensor"));
    model = reluModel();
    model.subgraph().operators[0]->outputs = {index};
    EXPECT_THAT(exercise(model), HasSubstr("writes tensor"));
    model = reluModel();
    model.subgraph().inputs = {index};
    EXPECT_THAT(exercise(model), HasSubstr("does not exist"));
    model = reluModel();
    model.subgraph().outputs = {index};
    EXPECT_THAT(exercise(model), HasSubstr("does not exist"));
  }
  ModelWriter model = reluModel();
  model.subgraph().operators[0]->opcode_index = 9;
  EXPECT_THAT(exercise(model), HasSubstr("operator code 9"));
  model = reluModel();
  model.tensor(1).buffer = 77;
  EXPECT_THAT(exercise(model), HasSubstr("buffer 77"));
  model = reluModel();
  model.subgraph().inputs = {0, 0};
  EXPECT_THAT(exercise(model), HasSubstr("listed twice"));
  model = reluModel();
  auto signature = std::make_unique<schema::SignatureDefT>();
  signature->signature_key = "far";
  signature->subgraph_index = 1u << 30;
  model.model.signature_defs.push_back(std::move(signature));
  const auto file = ModelFile::fromPool(poolOf(model.write()));
  ASSERT_TRUE(file);
  EXPECT_FALSE((*file)->importSignature("far"));
  EXPECT_FALSE((*file)->importSubgraph(std::numeric_limits<size_t>::max()));
}

TEST(BadInput, BuffersOutsideTheFile) {
  for (const uint64_t offset : {uint64_t{1} << 20, std::numeric_limits<uint64_t>::max()}) {
    ModelWriter model = reluModel();
    auto buffer = std::make_unique<schema::BufferT>();
    buffer->offset = offset;
    buffer->size = 8;
    model.model.buffers.push_back(std::move(buffer));
    model.tensor(0).buffer = 1;
    model.setArguments({}, {1});
    EXPECT_THAT(exercise(model), HasSubstr("outside the"));
  }
}

TEST(BadInput, ShapesAndConstantsThatDisagree) {
  ModelWriter model = reluModel();
  model.tensor(0).shape = {-5};
  EXPECT_THAT(exercise(model), HasSubstr("Dimension 0 of the tensor \"t0\" is -5"));
  model = reluModel();
  model.tensor(0).shape = std::vector<int32_t>(9, 1);
  EXPECT_THAT(exercise(model), HasSubstr("rank 9"));
  model = reluModel();
  model.tensor(0).shape_signature = {1, 2};
  EXPECT_THAT(exercise(model), HasSubstr("signature of its shape has 2"));

  for (const std::vector<int32_t>& shape :
       {std::vector<int32_t>{3}, {1 << 30, 1 << 30}, {0}, {1 << 30, 1 << 30, 1 << 30, 1 << 30}}) {
    ModelWriter constant;
    constant.addConstant<float>(TensorType::FLOAT32, {2}, {1.0f, 2.0f});
    constant.addTensor(TensorType::FLOAT32, {2});
    constant.addOperator(BuiltinOperator::RELU, {0}, {1});
    constant.setArguments({}, {1});
    constant.tensor(0).shape = shape;
    EXPECT_NE(exercise(constant), "imported");
  }
}

TEST(BadInput, QuantisationThatMakesNoSense) {
  for (const float scale : {NAN, -1.0f, INFINITY, -INFINITY}) {
    ModelWriter model;
    model.addTensor(TensorType::INT8, {2}, 0.5f);
    model.addTensor(TensorType::INT8, {2}, 0.5f);
    model.addOperator(BuiltinOperator::RELU, {0}, {1});
    model.setArguments({0}, {1});
    model.tensor(1).quantization->scale = {scale};
    EXPECT_THAT(exercise(model), HasSubstr("of the tensor \"t1\""));
    model.tensor(1).type = TensorType::FLOAT32;
    EXPECT_THAT(exercise(model), HasSubstr("of the tensor \"t1\""));
  }
  for (const int64_t zeroPoint : {int64_t{128}, int64_t{-129}, int64_t{1} << 40}) {
    ModelWriter model;
    model.addTensor(TensorType::INT8, {2}, 0.5f, zeroPoint);
    model.addTensor(TensorType::INT8, {2}, 0.5f);
    model.addOperator(BuiltinOperator::RELU, {0}, {1});
    model.setArguments({0}, {1});
    EXPECT_THAT(exercise(model), HasSubstr("outside [-128, 127]"));
  }
}

// One-dimensional tensors may name any dimension (person_detect does); other tensors may not.
TEST(BadInput, QuantisedDimensions) {
  ModelWriter model = reluModel();
  const int32_t weights = model.addConstant<int8_t>(TensorType::INT8, {2}, {1, 2}, 0.5f);
  model.tensor(weights).quantization->scale = {0.5f, 0.25f};
  model.tensor(weights).quantization->quantized_dimension = 3;
  const int32_t wide = model.addTensor(TensorType::FLOAT32, {2});
  model.addOperator(BuiltinOperator::DEQUANTIZE, {weights}, {wide});
  EXPECT_EQ(exercise(model), "imported");
  model.tensor(weights).shape = {1, 2};
  EXPECT_THAT(exercise(model), HasSubstr("along dimension 3, its rank is 2"));
}

TEST(BadInput, OperationsThatAreNotTranslated) {
  ModelWriter model = reluModel();
  model.model.operator_codes[0]->builtin_code = BuiltinOperator::SKIP_GRAM;
  model.model.operator_codes[0]->version = 2;
  EXPECT_EQ(exercise(model),
            "Operation 0 of subgraph 0 is SKIP_GRAM version 2 (builtin code 30), which is not "
            "supported.");
  model.model.operator_codes[0]->builtin_code = static_cast<BuiltinOperator>(5000);
  EXPECT_THAT(exercise(model), HasSubstr("BUILTIN_5000"));
  model.model.operator_codes[0]->builtin_code = BuiltinOperator::CUSTOM;
  model.model.operator_codes[0]->custom_code = "My\x01Op\xFF";
  EXPECT_THAT(exercise(model), HasSubstr("the custom operation \"My?Op?\" version 2"));
  model = reluModel();
  model.tensor(1).type = TensorType::VARIANT;
  EXPECT_THAT(exercise(model), HasSubstr("the type VARIANT"));
  model.tensor(1).type = static_cast<TensorType>(100);
  EXPECT_THAT(exercise(model), HasSubstr("the type TYPE_100"));
}

TEST(BadInput, VariablesThatAreTooLarge) {
  ModelWriter model;
  model.addTensor(TensorType::FLOAT32, {1, 2});
  const int32_t square = model.addConstant<float>(TensorType::FLOAT32, {2, 2}, {1, 2, 3, 4});
  const int32_t bias = model.addConstant<float>(TensorType::FLOAT32, {2}, {1, 2});
  const int32_t state = model.addVariable(TensorType::FLOAT32, {1 << 20, 1 << 10});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {1, 2});
  model.addOperator(BuiltinOperator::RNN, {0, square, square, bias, state}, {output});
  model.setArguments({0}, {output});
  EXPECT_THAT(exercise(model), HasSubstr("times its"));
}

// Tables may share what they refer to. A small file must not become a large model in this way.
TEST(BadInput, SharedTables) {
  flatbuffers::FlatBufferBuilder builder;
  const std::vector<int32_t> inputs(100000, 0);
  const std::vector<int32_t> outputs = {1};
  const auto sharedInputs = builder.CreateVector(inputs);
  const auto sharedOutputs = builder.CreateVector(outputs);
  std::vector<flatbuffers::Offset<schema::Operator>> operators;
  for (int i = 0; i < 2000; ++i)
    operators.push_back(schema::CreateOperator(builder, 0, sharedInputs, sharedOutputs));
  const auto code = schema::CreateOperatorCode(builder, 2, 0, 1, BuiltinOperator::CONCATENATION);
  const std::vector<int32_t> shape = {1};
  const auto tensorShape = builder.CreateVector(shape);
  const std::vector<flatbuffers::Offset<schema::Tensor>> tensors = {
      schema::CreateTensor(builder, tensorShape), schema::CreateTensor(builder, tensorShape)};
  const std::vector<int32_t> none;
  const auto subgraph = schema::CreateSubGraphDirect(builder, &tensors, &none, &none, &operators);
  const std::vector<flatbuffers::Offset<schema::SubGraph>> subgraphs = {subgraph};
  const std::vector<flatbuffers::Offset<schema::OperatorCode>> codes = {code};
  schema::FinishModelBuffer(builder, schema::CreateModelDirect(builder, 3, &codes, &subgraphs));
  const std::vector<uint8_t> bytes(builder.GetBufferPointer(),
                                   builder.GetBufferPointer() + builder.GetSize());
  EXPECT_THAT(exercise(bytes), HasSubstr("refer to the same data too often"));
}

TEST(BadInput, SharedOffsets) {
  flatbuffers::FlatBufferBuilder builder;
  const auto name = builder.CreateString(std::string(1000, 'x'));
  const std::vector<int32_t> shape = {1};
  const auto tensorShape = builder.CreateVector(shape);
  const auto tensor = schema::CreateTensor(builder, tensorShape, TensorType::FLOAT32, 0, name);
  const std::vector<flatbuffers::Offset<schema::Tensor>> tensors(1000000, tensor);
  const std::vector<int32_t> none;
  const auto subgraph = schema::CreateSubGraphDirect(builder, &tensors, &none, &none);
  const std::vector<flatbuffers::Offset<schema::SubGraph>> subgraphs = {subgraph};
  schema::FinishModelBuffer(builder, schema::CreateModelDirect(builder, 3, nullptr, &subgraphs));
  const std::vector<uint8_t> bytes(builder.GetBufferPointer(),
                                   builder.GetBufferPointer() + builder.GetSize());
  EXPECT_THAT(exercise(bytes), HasSubstr("to each other too often"));
}

}  // namespace
}  // namespace hearth::tflite
