// SPDX-License-Identifier: Apache-2.0
// libhearth.so as a client sees it, through hearth.hpp and hearth.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "frontends/tflite/testing/container_writer.h"
#include "frontends/tflite/testing/model_writer.h"
#include "frontends/tflite/testing/sample_models.h"
#include "hearth/hearth.hpp"

namespace hearth {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

template <typename Call>
hearth_status codeOf(Call call) {
  try {
    call();
  } catch (const Exception& exception) {
    EXPECT_STRNE(exception.what(), "");
    return exception.code();
  }
  return HEARTH_OK;
}

TEST(ApiTest, RefusesFilesThatAreNoModels) {
  EXPECT_EQ(codeOf([] { Model("/nonexistent.tflite"); }), HEARTH_NOT_FOUND);
  const std::vector<char> garbage(100, 'x');
  EXPECT_EQ(codeOf([&] { Model(garbage.data(), garbage.size()); }), HEARTH_BAD_DATA);
  EXPECT_EQ(codeOf([&] { Model(garbage.data(), 0); }), HEARTH_BAD_DATA);
  EXPECT_EQ(codeOf([] { Model(nullptr, 5); }), HEARTH_UNEXPECTED_NULL);
}

TEST(ApiTest, TakesAPartOfAContainer) {
  const auto containers = tflite::sampleContainers();
  const auto bytesOf = [&](const char* name) {
    return std::ranges::find(containers, name, &tflite::SampleContainer::name)->bytes;
  };
  const std::vector<uint8_t> one = bytesOf("one.task");
  const std::vector<uint8_t> two = bytesOf("two.task");
  const Model whole(one.data(), one.size());
  const Model part(two.data(), two.size(), "bits.tflite");
  EXPECT_EQ(part.inspect(), whole.inspect());
  const Model other(two.data(), two.size(), "folder/space.tflite");
  EXPECT_NE(other.inspect(), whole.inspect());
  EXPECT_FALSE(other.compile().inputs().empty());
  EXPECT_EQ(codeOf([&] { Model(two.data(), two.size()); }), HEARTH_NOT_FOUND);
  EXPECT_EQ(codeOf([&] { Model(two.data(), two.size(), "bits"); }), HEARTH_NOT_FOUND);
  const std::vector<uint8_t> deflated = bytesOf("deflated.task");
  EXPECT_EQ(codeOf([&] { Model(deflated.data(), deflated.size(), "bits.tflite"); }),
            HEARTH_UNSUPPORTED);

  EXPECT_EQ(codeOf([] { describeContainer("/nonexistent"); }), HEARTH_NOT_FOUND);
  const std::string path = std::filesystem::temp_directory_path() / "hearth-api-container.litertlm";
  const std::vector<uint8_t> litertlm = bytesOf("model.litertlm");
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(litertlm.data()),
             static_cast<std::streamsize>(litertlm.size()));
  EXPECT_THAT(describeContainer(path), HasSubstr("\"name\": \"prefill_decode\""));
  EXPECT_EQ(Model(path, "prefill_decode").inspect(), whole.inspect());
  std::filesystem::resize_file(path, 100);
  EXPECT_EQ(codeOf([&] { describeContainer(path); }), HEARTH_BAD_DATA);
  std::filesystem::remove(path);
}

TEST(ApiTest, ListsDevices) {
  const std::vector<Device> list = devices();
  ASSERT_FALSE(list.empty());
  for (const Device& device : list) {
    EXPECT_FALSE(device.name.empty());
    EXPECT_FALSE(device.version.empty());
  }
  EXPECT_EQ(list.back().name, "nnapi-reference");
  hearth_device_info info{};
  EXPECT_EQ(hearth_device_get(0, &info, nullptr), HEARTH_BAD_DATA);  // its size is not set
  info.size = sizeof(info);
  EXPECT_EQ(hearth_device_get(list.size(), &info, nullptr), HEARTH_NOT_FOUND);
  EXPECT_EQ(hearth_device_get(0, nullptr, nullptr), HEARTH_UNEXPECTED_NULL);
}

TEST(ApiTest, DevicesOfThisProcessHaveNoHost) {
  if (std::getenv("HEARTH_DRIVER_HOSTS") != nullptr) GTEST_SKIP() << "Devices have hosts.";
  for (size_t i = 0; i < devices().size(); ++i) {
    const DeviceHost host = deviceHost(i);
    EXPECT_EQ(host.kind, HEARTH_HOST_NONE);
    EXPECT_EQ(host.process, 0);
    EXPECT_EQ(host.clients, 0u);
  }
  EXPECT_EQ(codeOf([] { deviceHost(devices().size()); }), HEARTH_NOT_FOUND);
}

TEST(ApiTest, DescribesACacheFolder) {
  EXPECT_EQ(codeOf([] { describeCacheFolder("/nonexistent"); }), HEARTH_NOT_FOUND);
  char* json = nullptr;
  EXPECT_EQ(hearth_cache_folder_describe(nullptr, &json, nullptr), HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_cache_folder_describe("/", nullptr, nullptr), HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_model_explain_cache(nullptr, nullptr, "/", nullptr, &json, nullptr),
            HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(json, nullptr);
}

// The library does not write fields that an older client does not know.
TEST(ApiTest, FillsNoMoreThanTheClientKnows) {
  hearth_device_info info{};
  info.size = offsetof(hearth_device_info, version);
  info.feature_level = -5;
  ASSERT_EQ(hearth_device_get(0, &info, nullptr), HEARTH_OK);
  EXPECT_NE(info.name, nullptr);
  EXPECT_EQ(info.version, nullptr);
  EXPECT_EQ(info.feature_level, -5);
  EXPECT_EQ(info.size, offsetof(hearth_device_info, version));
}

// One handle of each kind, each created from the one before, with a run in the background.
class Chain {
 public:
  Chain(const std::vector<char>& file, const CompileOptions& options)
      : model_(std::in_place, file.data(), file.size()), compilation_(model_->compile(options)) {
    input_.resize(compilation_->inputs().at(0).byteSize / sizeof(float));
    for (size_t i = 0; i < input_.size(); ++i) input_[i] = static_cast<float>(i % 11) / 10.0f;
    output_.resize(compilation_->outputs().at(0).byteSize / sizeof(float));
    execution_.emplace(compilation_->createExecution());
    execution_->setInput(0, input_);
    execution_->setOutput(0, output_);
    event_.emplace(execution_->start());
  }

  static constexpr int kHandles = 4;
  void free(int handle) {
    if (handle == 0) model_.reset();
    if (handle == 1) compilation_.reset();
    if (handle == 2) execution_.reset();
    if (handle == 3) event_.reset();
  }

  // Uses each handle that is left and expects this result.
  void expectUsable(const std::vector<float>& expected) {
    if (event_) event_->wait();
    // Freeing the execution has waited for its run.
    isOver_ = isOver_ || event_ || !execution_;
    if (isOver_) {
      EXPECT_EQ(output_, expected);
    }
    if (execution_ && isOver_) {
      output_.assign(output_.size(), -1.0f);
      execution_->run();
      EXPECT_EQ(output_, expected);
      EXPECT_EQ(execution_->outputShape(0).size(), 2u);
    }
    if (compilation_) {
      EXPECT_EQ(compilation_->outputs().at(0).byteSize, expected.size() * sizeof(float));
      Execution another = compilation_->createExecution();
      std::vector<float> output(expected.size());
      another.setInput(0, input_);
      another.setOutput(0, output);
      another.run();
      EXPECT_EQ(output, expected);
    }
    if (model_) {
      EXPECT_THAT(model_->inspect(), HasSubstr("FULLY_CONNECTED"));
    }
  }

  // The result of the run in the background.
  const std::vector<float>& result() const {
    event_->wait();
    return output_;
  }

 private:
  std::vector<float> input_;
  std::vector<float> output_;
  bool isOver_ = false;  // the run in the background
  std::optional<Model> model_;
  std::optional<Compilation> compilation_;
  std::optional<Execution> execution_;
  std::optional<Event> event_;
};

// Objects that were created from a handle stay usable, with the same results, after the handle is
// freed. The model is in memory that must live as long as the last object that needs it.
TEST(ApiTest, HandlesMayGoInAnyOrder) {
  std::ifstream stream(HEARTH_TEST_MODEL, std::ios::binary);
  const std::vector<char> file((std::istreambuf_iterator<char>(stream)), {});
  for (const char* device : {"hearth-cpu", "nnapi-reference"}) {
    CompileOptions options;
    options.device = device;
    options.threads = 1;
    options.cache = HEARTH_CACHE_OFF;
    options.tuning = HEARTH_TUNING_OFF;
    const std::vector<float> expected = Chain(file, options).result();
    ASSERT_GT(std::set(expected.begin(), expected.end()).size(), 2u) << "The result tells nothing.";
    std::array<int, Chain::kHandles> order = {0, 1, 2, 3};
    do {
      SCOPED_TRACE(::testing::Message() << device << ", " << ::testing::PrintToString(order));
      Chain chain(file, options);
      for (const int handle : order) {
        chain.free(handle);
        chain.expectUsable(expected);
      }
    } while (std::ranges::next_permutation(order).found);
  }
}

class ApiModelTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* data = std::getenv("HEARTH_TEST_DATA");
    if (data == nullptr) GTEST_SKIP() << "HEARTH_TEST_DATA is not set.";
    folder_ = std::string(data) + "/data/models/";
  }
  std::string folder_;
};

TEST_F(ApiModelTest, RunsFromFileAndMemory) {
  const std::string path = folder_ + "split_concat.tflite";
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  const Model fromFile(path);
  const Model fromMemory(bytes.data(), bytes.size());
  bytes.assign(bytes.size(), 0);  // the library has its own copy

  std::vector<std::vector<std::vector<uint8_t>>> results;
  for (const Model* model : {&fromFile, &fromMemory}) {
    EXPECT_EQ(model->signatureKeys().size(), 1u);
    const Compilation compilation = model->compile();
    Execution execution = compilation.createExecution();
    std::vector<std::vector<uint8_t>> inputs;
    std::vector<std::vector<uint8_t>> outputs;
    for (const TensorInfo& info : compilation.inputs()) {
      EXPECT_EQ(info.type, HEARTH_TYPE_UINT8);
      EXPECT_EQ(info.dimensions, info.defaultDimensions);
      inputs.emplace_back(info.byteSize);
      for (size_t i = 0; i < info.byteSize; ++i) inputs.back()[i] = static_cast<uint8_t>(i * 7);
    }
    for (const TensorInfo& info : compilation.outputs()) outputs.emplace_back(info.byteSize);
    for (size_t i = 0; i < inputs.size(); ++i) execution.setInput(i, inputs[i]);
    for (size_t i = 0; i < outputs.size(); ++i) execution.setOutput(i, outputs[i]);
    execution.run();
    EXPECT_EQ(execution.outputShape(0), compilation.outputs()[0].dimensions);
    EXPECT_EQ(execution.statistics().runs, 1u);
    EXPECT_GT(execution.statistics().lastNs, 0u);

    // A run in the background gives the same.
    const std::vector<std::vector<uint8_t>> expected = outputs;
    for (auto& output : outputs) output.assign(output.size(), 0xAA);
    const Event event = execution.start();
    event.wait();
    EXPECT_TRUE(event.isDone());
    EXPECT_TRUE(event.waitFor(std::chrono::nanoseconds(1)));
    EXPECT_EQ(outputs, expected);
    results.push_back(outputs);
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST_F(ApiModelTest, CompilesSeveralSignaturesAtOnce) {
  const Model model(folder_ + "split_concat.tflite");
  const std::string key = model.signatureKeys().at(0);
  CompileOptions options;
  options.threads = 2;
  options.signature = "this one does not count";
  EXPECT_TRUE(model.compileSignatures({}, options).empty());
  const std::vector<Compilation> made = model.compileSignatures({key, key, key}, options);
  ASSERT_EQ(made.size(), 3u);
  for (const Compilation& compilation : made)
    EXPECT_EQ(compilation.inputs().size(), made[0].inputs().size());

  // All signatures compile or none; the error names the one that failed.
  try {
    model.compileSignatures({key, "no_such_signature", key}, options);
    FAIL();
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.code(), HEARTH_NOT_FOUND);
    EXPECT_THAT(exception.what(), HasSubstr("no_such_signature"));
  }
  hearth_compilation* compilation = nullptr;
  const char* const none[] = {nullptr};
  EXPECT_EQ(hearth_compile_signatures(model.get(), nullptr, none, 1, &compilation, nullptr),
            HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_compile_signatures(model.get(), nullptr, nullptr, 1, &compilation, nullptr),
            HEARTH_UNEXPECTED_NULL);
  const char* const first[] = {key.c_str()};
  EXPECT_EQ(hearth_compile_signatures(model.get(), nullptr, first, 1, nullptr, nullptr),
            HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(compilation, nullptr);
}

TEST_F(ApiModelTest, ACacheFolderIsOneOfNnapis) {
  const Model model(folder_ + "mobilenet_v1_0.25_128_quant.tflite");
  std::string pattern = std::filesystem::temp_directory_path() / "hearth-api-XXXXXX";
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  CompileOptions options;
  options.device = "hearth-cpu";
  options.cacheDir = pattern;
  options.cacheToken = {7};
  const auto report = [&] {
    return model.compile(options).startReportJson();
  };
  const std::string hit = "\"cache\": \"hit\"";
  EXPECT_THAT(report(), HasSubstr("cannot be opened: No such file"));
  EXPECT_THAT(report(), HasSubstr(hit));
  EXPECT_THAT(model.explainCache(pattern, options.cacheToken, options),
              HasSubstr("\"state\": \"hit\""));
  options.cacheToken = {8};
  EXPECT_THAT(report(), Not(HasSubstr(hit)));

  hearth_compile_options raw = HEARTH_COMPILE_OPTIONS_INIT;
  raw.cache_dir = pattern.c_str();
  hearth_compilation* compilation = nullptr;
  EXPECT_EQ(hearth_compile(model.get(), &raw, &compilation, nullptr), HEARTH_UNEXPECTED_NULL);
  std::error_code ignored;
  std::filesystem::remove_all(pattern, ignored);
}

// One run with four pictures gives what four runs with one give.
TEST_F(ApiModelTest, GivenShapesAreThoseOfTheCompilation) {
  for (const char* device : {"hearth-cpu", "nnapi-reference"}) {
    const Model model(folder_ + "person_detect.tflite");
    CompileOptions options;
    options.device = device;
    const Compilation one = model.compile(options);
    const std::string name = one.inputs()[0].name;
    options.shapes[name] = {4, 96, 96, 1};
    const Compilation four = model.compile(options);
    EXPECT_EQ(four.inputs()[0].dimensions, options.shapes[name]);
    EXPECT_EQ(four.inputs()[0].defaultDimensions, options.shapes[name]);
    EXPECT_EQ(four.outputs()[0].dimensions, (std::vector<uint32_t>{4, 2}));
    ASSERT_EQ(four.inputs()[0].byteSize, 4 * one.inputs()[0].byteSize);
    std::vector<uint8_t> pictures(four.inputs()[0].byteSize);
    for (size_t i = 0; i < pictures.size(); ++i)
      pictures[i] = static_cast<uint8_t>(i * i / 97 + i / 96 / 96 * 31);
    const auto run = [](const Compilation& compilation, const uint8_t* input) {
      std::vector<uint8_t> output(compilation.outputs()[0].byteSize);
      Execution execution = compilation.createExecution();
      execution.setInput(0, input, compilation.inputs()[0].byteSize);
      execution.setOutput(0, output);
      execution.run();
      return output;
    };
    std::vector<uint8_t> alone;
    for (size_t i = 0; i < 4; ++i) {
      const std::vector<uint8_t> output = run(one, pictures.data() + i * one.inputs()[0].byteSize);
      alone.insert(alone.end(), output.begin(), output.end());
    }
    EXPECT_EQ(run(four, pictures.data()), alone) << device;
  }
}

TEST_F(ApiModelTest, GivenShapesThatDoNotFitAreRefused) {
  const Model model(folder_ + "split_concat.tflite");
  const auto codeFor = [&](std::map<std::string, std::vector<uint32_t>> shapes) {
    CompileOptions options;
    options.shapes = std::move(shapes);
    return codeOf([&] { model.compile(options); });
  };
  EXPECT_EQ(codeFor({{"input1", {1, 8, 8, 3}}}), HEARTH_OK);  // as the file has it
  EXPECT_EQ(codeFor({{"no such input", {1, 8, 8, 3}}}), HEARTH_NOT_FOUND);
  EXPECT_EQ(codeFor({{"", {1, 8, 8, 3}}}), HEARTH_NOT_FOUND);  // there are three
  EXPECT_EQ(codeFor({{"input1", {1, 8, 8}}}), HEARTH_BAD_DATA);
  EXPECT_EQ(codeFor({{"input1", {1, 0, 8, 3}}}), HEARTH_BAD_DATA);
  EXPECT_EQ(codeFor({{"input1", {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}}}),
            HEARTH_BAD_DATA);
  EXPECT_EQ(codeFor({{"input1", std::vector<uint32_t>(1000, 1)}}), HEARTH_BAD_DATA);
  EXPECT_EQ(codeFor({{"input1", {4, 8, 8, 3}}}), HEARTH_BAD_DATA);  // the other inputs have one

  const uint32_t dimensions[] = {1, 8, 8, 3};
  hearth_input_shape shapes[] = {{sizeof(hearth_input_shape), "input1", dimensions, 4},
                                 {sizeof(hearth_input_shape), "input1", dimensions, 4}};
  hearth_compile_options options = HEARTH_COMPILE_OPTIONS_INIT;
  options.shapes = shapes;
  options.shape_count = 1;
  const auto codeNow = [&] {
    hearth_compilation* compilation = nullptr;
    const hearth_status status = hearth_compile(model.get(), &options, &compilation, nullptr);
    hearth_compilation_free(compilation);
    return status;
  };
  EXPECT_EQ(codeNow(), HEARTH_OK);
  options.shape_count = 2;
  EXPECT_EQ(codeNow(), HEARTH_BAD_DATA);  // twice the same
  options.shape_count = 1;
  shapes[0].dimensions = nullptr;
  EXPECT_EQ(codeNow(), HEARTH_UNEXPECTED_NULL);
  shapes[0] = {0, "input1", dimensions, 4};
  EXPECT_EQ(codeNow(), HEARTH_BAD_DATA);
  options.shapes = nullptr;
  EXPECT_EQ(codeNow(), HEARTH_UNEXPECTED_NULL);
}

TEST_F(ApiModelTest, AnInspectionTakesOtherShapes) {
  const Model model(folder_ + "person_detect.tflite");
  CompileOptions options;
  options.shapes[""] = {4, 96, 96, 1};
  const std::string four = model.inspect(options);
  EXPECT_NE(four, model.inspect());
  EXPECT_EQ(model.inspect(CompileOptions()), model.inspect());
  EXPECT_THAT(model.describeSignature(), HasSubstr("\"inputs\""));
  EXPECT_THAT(model.describeSignature(), Not(HasSubstr("\"operations\"")));
  EXPECT_EQ(codeOf([&] { model.describeSignature(1); }), HEARTH_NOT_FOUND);
  options.signature = "no such signature";
  EXPECT_EQ(codeOf([&] { model.inspect(options); }), HEARTH_NOT_FOUND);
  options.signature.clear();
  options.shapes = {{"no such input", {4, 96, 96, 1}}};
  EXPECT_EQ(codeOf([&] { model.inspect(options); }), HEARTH_NOT_FOUND);
  options.shapes = {{"", {4, 96, 96}}};
  EXPECT_EQ(codeOf([&] { model.inspect(options); }), HEARTH_BAD_DATA);

  char* json = nullptr;
  EXPECT_EQ(hearth_model_inspect_shapes(model.get(), nullptr, &json, nullptr), HEARTH_OK);
  EXPECT_EQ(json, model.inspect());
  hearth_string_free(json);
  EXPECT_EQ(hearth_model_inspect_shapes(nullptr, nullptr, &json, nullptr), HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_model_inspect_shapes(model.get(), nullptr, nullptr, nullptr),
            HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_model_signature_describe(nullptr, 0, &json, nullptr), HEARTH_UNEXPECTED_NULL);
  EXPECT_EQ(hearth_model_signature_describe(model.get(), 0, nullptr, nullptr),
            HEARTH_UNEXPECTED_NULL);
}

// Other shapes are another model: no cache file and no state of one is taken for the other.
// The elements of one output, for inputs that are the same at each call.
std::vector<uint8_t> outputOf(const Compilation& compilation, const std::string& name) {
  std::vector<std::vector<uint8_t>> inputs;
  std::vector<std::vector<uint8_t>> outputs;
  Execution execution = compilation.createExecution();
  for (const TensorInfo& info : compilation.inputs()) {
    inputs.emplace_back(info.byteSize);
    for (size_t i = 0; i < info.byteSize; ++i)
      inputs.back()[i] = static_cast<uint8_t>(i * 7 + inputs.size());
  }
  for (const TensorInfo& info : compilation.outputs()) outputs.emplace_back(info.byteSize);
  for (size_t i = 0; i < inputs.size(); ++i) execution.setInput(i, inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i) execution.setOutput(i, outputs[i]);
  execution.run();
  for (size_t i = 0; i < outputs.size(); ++i)
    if (compilation.outputs()[i].name == name) return outputs[i];
  ADD_FAILURE() << "There is no output " << name << ".";
  return {};
}

TEST_F(ApiModelTest, OutputsThatAreNotWantedAreNotThere) {
  const Model model(folder_ + "split_concat.tflite");
  for (const char* device : {"hearth-cpu", "nnapi-reference"}) {
    CompileOptions options;
    options.device = device;
    const Compilation all = model.compile(options);
    ASSERT_GE(all.outputs().size(), 2u);
    for (const TensorInfo& output : all.outputs()) {
      options.outputs = {output.name};
      const Compilation one = model.compile(options);
      ASSERT_EQ(one.outputs().size(), 1u);
      EXPECT_EQ(one.inputs().size(), all.inputs().size());
      EXPECT_EQ(outputOf(one, output.name), outputOf(all, output.name)) << device;
    }
  }
  CompileOptions unknown;
  unknown.outputs = {model.compile().outputs()[0].name, "no such output"};
  EXPECT_EQ(codeOf([&] { model.compile(unknown); }), HEARTH_NOT_FOUND);
  hearth_compile_options options = HEARTH_COMPILE_OPTIONS_INIT;
  options.output_count = 1;
  hearth_compilation* compilation = nullptr;
  EXPECT_EQ(hearth_compile(model.get(), &options, &compilation, nullptr), HEARTH_UNEXPECTED_NULL);
  const char* const names[] = {nullptr};
  options.outputs = names;
  EXPECT_EQ(hearth_compile(model.get(), &options, &compilation, nullptr), HEARTH_UNEXPECTED_NULL);
}

TEST_F(ApiModelTest, ACacheFolderTellsOutputsApart) {
  const Model model(folder_ + "split_concat.tflite");
  std::string pattern = std::filesystem::temp_directory_path() / "hearth-api-XXXXXX";
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  CompileOptions options;
  options.device = "hearth-cpu";
  options.cacheDir = pattern;
  const std::vector<TensorInfo> outputs = model.compile(options).outputs();
  for (const bool isHit : {false, true})
    for (const TensorInfo& output : outputs) {
      options.outputs = {output.name};
      const Compilation compilation = model.compile(options);
      EXPECT_EQ(compilation.startReportJson().contains("\"cache\": \"hit\""), isHit) << output.name;
      EXPECT_EQ(compilation.outputs()[0].name, output.name);
    }
  std::error_code ignored;
  std::filesystem::remove_all(pattern, ignored);
}

TEST_F(ApiModelTest, ACacheFolderTellsShapesApart) {
  const Model model(folder_ + "mobilenet_v1_0.25_128_quant.tflite");
  std::string pattern = std::filesystem::temp_directory_path() / "hearth-api-XXXXXX";
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  CompileOptions options;
  options.device = "hearth-cpu";
  options.cacheDir = pattern;
  const std::string hit = "\"cache\": \"hit\"";
  for (const uint32_t batch : {1u, 4u, 2u}) {
    options.shapes = {{"input", {batch, 128, 128, 3}}};
    EXPECT_THAT(model.compile(options).startReportJson(), Not(HasSubstr(hit))) << batch;
  }
  for (const uint32_t batch : {4u, 1u, 2u}) {
    options.shapes = {{"input", {batch, 128, 128, 3}}};
    const Compilation compilation = model.compile(options);
    EXPECT_THAT(compilation.startReportJson(), HasSubstr(hit)) << batch;
    EXPECT_EQ(compilation.outputs()[0].byteSize, batch * 1001);
    EXPECT_THAT(model.explainCache(pattern, options.cacheToken, options),
                HasSubstr("\"state\": \"hit\""));
  }
  // The shape of the file needs no mention.
  options.shapes.clear();
  EXPECT_THAT(model.compile(options).startReportJson(), HasSubstr(hit));
  std::error_code ignored;
  std::filesystem::remove_all(pattern, ignored);
}

TEST_F(ApiModelTest, OtherShapesStartWithTheSamePackedWeights) {
  const Model model(folder_ + "mobilenet_v1_0.25_128_quant.tflite");
  std::string pattern = std::filesystem::temp_directory_path() / "hearth-api-XXXXXX";
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  CompileOptions options;
  options.device = "hearth-cpu";
  options.store = pattern;
  options.cache = HEARTH_CACHE_READ_WRITE;
  options.preparation = HEARTH_PREPARE_WHOLE;
  // A host for a store ends with its last model, and flush() does not find it any more.
  std::optional<Compilation> compilation(model.compile(options));
  const StartReport first = compilation->startReport();
  // A host that others share has a store of its own, which may know the model.
  if (deviceHost(0).kind != HEARTH_HOST_SHARED) {
    EXPECT_EQ(first.state, HEARTH_START_COLD);
  }
  flush();
  compilation.reset();
  for (const uint32_t batch : {4u, 7u}) {
    options.shapes = {{"input", {batch, 128, 128, 3}}};
    const StartReport report = model.compile(options).startReport();
    EXPECT_EQ(report.state, HEARTH_START_WARM) << report.reason;
    EXPECT_EQ(report.packedBytes, 0u);
    EXPECT_GT(report.mappedBytes, 400'000u);
  }
  std::error_code ignored;
  std::filesystem::remove_all(pattern, ignored);
}

TEST_F(ApiModelTest, StartReportAndInspection) {
  const Model model(folder_ + "mobilenet_v1_0.25_128_quant.tflite");
  const Compilation compilation = model.compile();
  const StartReport report = compilation.startReport();
  EXPECT_GT(report.prepareMs, 0);
  EXPECT_GT(report.activationBytes, 0u);
  // Only a warm start has no reason.
  EXPECT_EQ(report.reason.empty(), report.state == HEARTH_START_WARM);
  const std::string json = compilation.startReportJson();
  for (const char* key :
       {"\"state\"", "\"reason\"", "\"prepare_ms\"", "\"packed_bytes\"", "\"mapped_bytes\""})
    EXPECT_THAT(json, HasSubstr(key));
  const std::string inspection = model.inspect();
  EXPECT_THAT(inspection, HasSubstr("CONV_2D"));
  EXPECT_THAT(inspection, HasSubstr("nnapi-reference"));
}

TEST(ApiTest, AnInspectionListsTheTensorsOfTheFile) {
  tflite::ModelWriter writer;
  const int32_t input = writer.addTensor(tflite::schema::TensorType::UINT8, {2}, 0.5f, 3);
  const int32_t output = writer.addTensor(tflite::schema::TensorType::UINT8, {2}, 0.25f, 3);
  writer.addOperator(tflite::schema::BuiltinOperator::QUANTIZE, {input}, {output});
  writer.setArguments({input}, {output});
  const std::vector<uint8_t> bytes = writer.write();
  const Model model(bytes.data(), bytes.size());
  const auto subgraph = nlohmann::json::parse(model.inspect())["subgraphs"][0];
  ASSERT_EQ(subgraph["tensors"].size(), 2u);
  EXPECT_EQ(subgraph["tensors"][1]["scales"], nlohmann::json({0.25}));
  const Compilation compilation = model.compile();
  EXPECT_EQ(compilation.inputs()[0].scale, 0.5f);
  EXPECT_EQ(compilation.outputs()[0].scale, 0.25f);
}

TEST_F(ApiModelTest, ReportsBadUse) {
  const Model model(folder_ + "split_concat.tflite");
  CompileOptions options;
  options.device = "no-such-device";
  EXPECT_EQ(codeOf([&] { model.compile(options); }), HEARTH_NOT_FOUND);
  options = {};
  options.signature = "no_such_signature";
  EXPECT_EQ(codeOf([&] { model.compile(options); }), HEARTH_NOT_FOUND);
  options = {};
  options.maxActivationBytes = 16;
  EXPECT_EQ(codeOf([&] { model.compile(options); }), HEARTH_RESOURCE_EXHAUSTED_PERSISTENT);
  options = {};
  options.priority = static_cast<hearth_priority>(7);
  EXPECT_EQ(codeOf([&] { model.compile(options); }), HEARTH_BAD_DATA);

  const Compilation compilation = model.compile();
  Execution execution = compilation.createExecution();
  std::vector<uint8_t> memory(7);
  EXPECT_EQ(codeOf([&] { execution.run(); }), HEARTH_BAD_STATE);
  EXPECT_EQ(codeOf([&] { execution.setInput(0, memory); }), HEARTH_BAD_DATA);
  EXPECT_EQ(codeOf([&] { execution.setInput(99, memory); }), HEARTH_BAD_DATA);
  EXPECT_EQ(codeOf([&] { execution.setOutput(0, memory); }), HEARTH_BAD_DATA);
  EXPECT_EQ(codeOf([&] { execution.setInput(0, nullptr, 192); }), HEARTH_UNEXPECTED_NULL);
  size_t rank = 0;
  EXPECT_EQ(hearth_execution_output_shape(execution.get(), 0, nullptr, &rank, nullptr),
            HEARTH_BAD_DATA);
  EXPECT_EQ(rank, 4u);
}

TEST_F(ApiModelTest, ExecutionsRunInSeveralThreads) {
  const Model model(folder_ + "keras_lstm_mnist_ptq.tflite");
  const Compilation compilation = model.compile();
  const size_t inputBytes = compilation.inputs()[0].byteSize;
  const size_t outputBytes = compilation.outputs()[0].byteSize;
  const auto run = [&](uint8_t value) {
    Execution execution = compilation.createExecution();
    const std::vector<uint8_t> input(inputBytes, value);
    std::vector<uint8_t> output(outputBytes);
    execution.setInput(0, input);
    execution.setOutput(0, output);
    for (int i = 0; i < 3; ++i) execution.run();
    return output;
  };
  std::vector<std::vector<uint8_t>> alone;
  for (int i = 0; i < 4; ++i) alone.push_back(run(static_cast<uint8_t>(i * 60)));
  std::vector<std::vector<uint8_t>> together(4);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] { together[i] = run(static_cast<uint8_t>(i * 60)); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(together, alone);
}

}  // namespace
}  // namespace hearth
