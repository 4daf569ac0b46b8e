// SPDX-License-Identifier: Apache-2.0
// Custom operators through hearth.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "frontends/tflite/testing/model_writer.h"
#include "hearth/hearth.hpp"

namespace hearth {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using tflite::ModelWriter;
using tflite::schema::BuiltinOperator;
using tflite::schema::TensorType;

// An operator made of functions that a test gives. Registered operators live as long as the
// process.
struct TestOperator {
  explicit TestOperator(std::string named, int32_t version = 1) : name(std::move(named)) {
    custom.size = sizeof custom;
    custom.name = name.c_str();
    custom.version = version;
    custom.user = this;
    custom.prepare = [](hearth_custom_call* call) {
      return self(call).prepare(call);
    };
    custom.compute = [](hearth_custom_call* call) {
      return self(call).compute(call);
    };
  }
  TestOperator(const TestOperator&) = delete;
  TestOperator& operator=(const TestOperator&) = delete;

  static TestOperator& self(hearth_custom_call* call) {
    return *static_cast<TestOperator*>(call->user);
  }
  void useState() {
    custom.init = [](hearth_custom_call* call) {
      return self(call).init(call);
    };
    custom.free = [](hearth_custom_call* call) {
      self(call).free(call);
    };
  }

  std::string name;
  hearth_custom_operator custom{};
  std::function<hearth_status(hearth_custom_call*)> init;
  std::function<void(hearth_custom_call*)> free;
  // The outputs are like the first input.
  std::function<hearth_status(hearth_custom_call*)> prepare = [](hearth_custom_call* call) {
    for (size_t i = 0; i < call->output_count; ++i) {
      call->outputs[i]->rank = call->inputs[0]->rank;
      std::copy_n(call->inputs[0]->dimensions, HEARTH_CUSTOM_MAX_RANK,
                  call->outputs[i]->dimensions);
    }
    return HEARTH_OK;
  };
  // Doubles float32 numbers.
  std::function<hearth_status(hearth_custom_call*)> compute = [](hearth_custom_call* call) {
    const auto* from = static_cast<const float*>(call->inputs[0]->data);
    auto* to = static_cast<float*>(call->outputs[0]->data);
    for (size_t i = 0; i < call->inputs[0]->byte_size / sizeof(float); ++i) to[i] = 2 * from[i];
    return HEARTH_OK;
  };
};

TestOperator& makeOperator(const std::string& name, int32_t version = 1) {
  return *new TestOperator(name, version);
}

// float32 [4] -> the operator -> an output whose shape the file does not give.
ModelWriter plainModel(const std::string& name, std::vector<uint8_t> options = {}) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {4});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {});
  model.addCustom(name, {input}, {output}, std::move(options), 3);
  model.setArguments({input}, {output});
  return model;
}

Model load(const ModelWriter& writer) {
  const std::vector<uint8_t> bytes = writer.write();
  return Model(bytes.data(), bytes.size());
}

CompileOptions on(const char* device) {
  CompileOptions options;
  options.device = device;
  options.cache = HEARTH_CACHE_OFF;
  return options;
}

constexpr const char* kDevices[] = {"hearth-cpu", "nnapi-reference", ""};

std::vector<float> run(const Compilation& compilation, std::vector<float> input) {
  Execution execution = compilation.createExecution();
  std::vector<float> output(compilation.outputs().at(0).byteSize / sizeof(float) + 16);
  execution.setInput(0, input);
  execution.setOutput(0, output);
  execution.run();
  size_t count = 1;
  for (const uint32_t dimension : execution.outputShape(0)) count *= dimension;
  output.resize(count);
  return output;
}

std::string errorOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Exception& exception) {
    return exception.what();
  }
  return "no error";
}

std::string errorOfRegistering(const hearth_custom_operator& custom) {
  return errorOf([&] { registerCustomOperator(custom); });
}

TEST(CustomOperatorTest, RunsOnEachDevice) {
  TestOperator& custom = makeOperator("Api_Double");
  registerCustomOperator(custom.custom);
  const Model model = load(plainModel("Api_Double"));
  for (const char* device : kDevices) {
    SCOPED_TRACE(device);
    const Compilation compilation = model.compile(on(device));
    // prepare() gave the shape; the file has none.
    EXPECT_THAT(compilation.outputs().at(0).dimensions, ElementsAre(4));
    EXPECT_THAT(run(compilation, {1, 2, 3, -4}), ElementsAre(2, 4, 6, -8));
  }
  EXPECT_THAT(model.inspect(), HasSubstr("\"type\": \"Api_Double\""));
}

TEST(CustomOperatorTest, WithoutRegistrationTheErrorSaysWhatToDo) {
  const Model model = load(plainModel("Api_Nobody"));
  const std::string error = errorOf([&] { model.compile(); });
  EXPECT_THAT(error, HasSubstr("\"Api_Nobody\" version 3"));
  EXPECT_THAT(error, HasSubstr("hearth_custom_operator_register"));
  // An operator that is registered after the model was loaded is found.
  TestOperator& custom = makeOperator("Api_Nobody");
  registerCustomOperator(custom.custom);
  EXPECT_THAT(run(model.compile(on("hearth-cpu")), {1, 2, 3, 4}), ElementsAre(2, 4, 6, 8));
}

TEST(CustomOperatorTest, BadRegistrationsAreRefused) {
  EXPECT_EQ(hearth_custom_operator_register(nullptr, nullptr), HEARTH_UNEXPECTED_NULL);
  TestOperator good("Api_Once");
  hearth_custom_operator bad = good.custom;
  bad.size = 0;
  EXPECT_THAT(errorOfRegistering(bad), HasSubstr("size 0"));
  bad = good.custom;
  bad.name = nullptr;
  EXPECT_THAT(errorOfRegistering(bad), HasSubstr("custom->name"));
  const std::string longName(1025, 'x');
  for (const char* name : {"", longName.c_str()}) {
    bad.name = name;
    EXPECT_THAT(errorOfRegistering(bad), HasSubstr("1 to 1024"));
  }
  bad.name = "TFLite_Detection_PostProcess";
  EXPECT_THAT(errorOfRegistering(bad), HasSubstr("library's own"));
  bad = good.custom;
  bad.compute = nullptr;
  EXPECT_THAT(errorOfRegistering(bad), HasSubstr("no prepare or no compute"));
  bad = good.custom;
  bad.prepare = nullptr;
  EXPECT_THAT(errorOfRegistering(bad), HasSubstr("no prepare or no compute"));
  TestOperator& kept = makeOperator("Api_Once");
  registerCustomOperator(kept.custom);
  EXPECT_THAT(errorOfRegistering(kept.custom), HasSubstr("\"Api_Once\" is registered already"));
}

TEST(CustomOperatorTest, OptionsConstantsAndOmittedInputsAreSeen) {
  TestOperator& custom = makeOperator("Api_Weighted");
  custom.useState();
  std::atomic<int> states = 0;
  std::atomic<bool> isRight = true;
  const auto check = [&isRight](bool condition) {
    if (!condition) isRight = false;
  };
  custom.init = [&](hearth_custom_call* call) {
    check(call->size == sizeof(hearth_custom_call) && call->operation_version == 3);
    check(call->input_count == 0 && call->output_count == 0 && call->state == nullptr);
    const auto* options = static_cast<const uint8_t*>(call->options);
    call->state = new std::vector<uint8_t>(options, options + call->option_bytes);
    ++states;
    return HEARTH_OK;
  };
  custom.free = [&](hearth_custom_call* call) {
    check(call->options == nullptr);
    delete static_cast<std::vector<uint8_t>*>(call->state);
    --states;
  };
  const auto like = custom.prepare;
  custom.prepare = [&, like](hearth_custom_call* call) {
    check(call->option_bytes == 2 && call->input_count == 3 && call->output_count == 2);
    check(call->inputs[0]->size == sizeof(hearth_custom_tensor));
    check(call->inputs[0]->type == HEARTH_TYPE_FLOAT32 && call->inputs[0]->data == nullptr);
    check(call->inputs[0]->rank == 1 && call->inputs[0]->dimensions[0] == 4);
    check(call->inputs[1] == nullptr);
    const hearth_custom_tensor& weights = *call->inputs[2];
    check(weights.type == HEARTH_TYPE_INT8 && weights.scale == 0.5f && weights.zero_point == 2);
    check(weights.byte_size == 4 && static_cast<const int8_t*>(weights.data)[3] == 6);
    check(call->outputs[0]->rank == HEARTH_RANK_UNKNOWN && call->outputs[0]->data == nullptr);
    check(call->outputs[1]->type == HEARTH_TYPE_UINT8 && call->outputs[1]->scale == 0.25f);
    return like(call);
  };
  custom.compute = [&](hearth_custom_call* call) {
    const auto& state = *static_cast<const std::vector<uint8_t>*>(call->state);
    check(std::memcmp(call->options, state.data(), 2) == 0);
    const auto* from = static_cast<const float*>(call->inputs[0]->data);
    const auto* weights = static_cast<const int8_t*>(call->inputs[2]->data);
    for (size_t i = 0; i < 4; ++i) {
      const float weight = 0.5f * static_cast<float>(weights[i] - 2);
      static_cast<float*>(call->outputs[0]->data)[i] = from[i] * weight + state.at(1);
      static_cast<uint8_t*>(call->outputs[1]->data)[i] = state.at(0);
    }
    return HEARTH_OK;
  };
  registerCustomOperator(custom.custom);

  ModelWriter writer;
  const int32_t input = writer.addTensor(TensorType::FLOAT32, {4});
  const int32_t weights = writer.addConstant<int8_t>(TensorType::INT8, {4}, {2, 4, 4, 6}, 0.5f, 2);
  const int32_t sums = writer.addTensor(TensorType::FLOAT32, {4});
  const int32_t marks = writer.addTensor(TensorType::UINT8, {4}, 0.25f, 0);
  writer.addCustom("Api_Weighted", {input, -1, weights}, {sums, marks}, {7, 100}, 3);
  writer.setArguments({input}, {sums, marks});
  {
    const Model model = load(writer);
    for (const char* device : kDevices) {
      SCOPED_TRACE(device);
      const Compilation compilation = model.compile(on(device));
      Execution execution = compilation.createExecution();
      std::vector<float> in = {1, 2, 3, 4};
      std::vector<float> out(4);
      std::vector<uint8_t> marked(4);
      execution.setInput(0, in);
      execution.setOutput(0, out);
      execution.setOutput(1, marked);
      for (int i = 0; i < 2; ++i) execution.run();
      EXPECT_THAT(out, ElementsAre(100, 102, 103, 108));
      EXPECT_THAT(marked, Each(7));
      EXPECT_GT(states, 0);
    }
  }
  EXPECT_TRUE(isRight);
  EXPECT_EQ(states, 0);
}

TEST(CustomOperatorTest, FailuresReachTheProgramWithTheirMessage) {
  // The function that fails, and how.
  for (const std::string where : {"init", "prepare", "compute"}) {
    for (const bool throws : {false, true}) {
      SCOPED_TRACE(where + (throws ? " throws" : ""));
      TestOperator& custom = makeOperator("Api_Failing_" + where + (throws ? "_throws" : ""));
      custom.useState();
      custom.init = [](hearth_custom_call*) {
        return HEARTH_OK;
      };
      custom.free = [](hearth_custom_call*) {
      };
      const auto failing = [throws](hearth_custom_call* call) {
        if (throws) throw std::runtime_error("No such thing.");
        // Any character, without a terminating zero.
        std::memset(call->message, 'x', HEARTH_CUSTOM_MESSAGE_BYTES);
        std::memcpy(call->message, "No such\nthing.", 14);
        return HEARTH_UNSUPPORTED;
      };
      if (where == "init") custom.init = failing;
      if (where == "prepare") custom.prepare = failing;
      if (where == "compute") custom.compute = failing;
      registerCustomOperator(custom.custom);
      const Model model = load(plainModel(custom.name));
      for (const char* device : kDevices) {
        const std::string error = errorOf([&] { run(model.compile(on(device)), {1, 2, 3, 4}); });
        EXPECT_THAT(error, HasSubstr("No such thing."));
        EXPECT_THAT(error, HasSubstr(custom.name));
        EXPECT_THAT(error, HasSubstr(where));
      }
    }
  }
}

TEST(CustomOperatorTest, AFailureWithoutAMessageTellsItsCode) {
  TestOperator& custom = makeOperator("Api_Silent");
  custom.compute = [](hearth_custom_call*) {
    return HEARTH_OUTPUT_INSUFFICIENT_SIZE;
  };
  registerCustomOperator(custom.custom);
  const Model model = load(plainModel("Api_Silent"));
  const Compilation compilation = model.compile(on("nnapi-reference"));
  try {
    run(compilation, {1, 2, 3, 4});
    FAIL();
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.code(), HEARTH_OP_FAILED);
    EXPECT_THAT(exception.what(), HasSubstr("fails with the code 8"));
  }
}

TEST(CustomOperatorTest, WrongAnswersOfPrepareAreErrors) {
  using Change = std::function<void(hearth_custom_tensor*)>;
  const std::vector<std::pair<Change, const char*>> wrong = {
      {[](hearth_custom_tensor* output) { output->rank = HEARTH_RANK_UNKNOWN; },
       "sets no shape of output 0"},
      {[](hearth_custom_tensor* output) { output->rank = 9; }, "the rank 9"},
      {[](hearth_custom_tensor* output) { output->dimensions[0] = static_cast<uint32_t>(-1); },
       "the dimension -1"},
      {[](hearth_custom_tensor* output) {
         output->rank = 8;
         std::fill_n(output->dimensions, 8, 0x7FFFFFFFu);
       },
       "too many elements"},
      {[](hearth_custom_tensor* output) { output->type = 99; }, "type 99"},
      {[](hearth_custom_tensor* output) { output->type = HEARTH_TYPE_INT4; }, "type 13"},
      {[](hearth_custom_tensor* output) { output->scale = 0.5f; }, "the scale 0.5"},
      {[](hearth_custom_tensor* output) { output->zero_point = 1; }, "the zero point 1"},
      {[](hearth_custom_tensor* output) {
         output->type = HEARTH_TYPE_UINT8;
         output->scale = -1;
       },
       "scale"},
      {[](hearth_custom_tensor* output) {
         output->type = HEARTH_TYPE_INT8;
         output->zero_point = 1000;
       },
       "zero point"},
  };
  for (size_t i = 0; i < wrong.size(); ++i) {
    SCOPED_TRACE(i);
    TestOperator& custom = makeOperator("Api_Wrong_" + std::to_string(i));
    const auto like = custom.prepare;
    custom.prepare = [like, change = wrong[i].first](hearth_custom_call* call) {
      like(call);
      change(call->outputs[0]);
      return HEARTH_OK;
    };
    registerCustomOperator(custom.custom);
    const Model model = load(plainModel(custom.name));
    for (const char* device : kDevices)
      EXPECT_THAT(errorOf([&] { model.compile(on(device)); }), HasSubstr(wrong[i].second));
  }
}

// The file has the type and shape that a converter guessed.
TEST(CustomOperatorTest, PrepareSetsTypeAndShape) {
  TestOperator& custom = makeOperator("Api_Count");
  custom.prepare = [](hearth_custom_call* call) {
    call->outputs[0]->type = HEARTH_TYPE_INT32;
    call->outputs[0]->rank = 2;
    call->outputs[0]->dimensions[0] = 1;
    call->outputs[0]->dimensions[1] = call->inputs[0]->dimensions[0] - 1;
    return HEARTH_OK;
  };
  custom.compute = [](hearth_custom_call* call) {
    for (int32_t i = 0; i < 3; ++i)
      static_cast<int32_t*>(call->outputs[0]->data)[i] =
          static_cast<int32_t>(static_cast<const float*>(call->inputs[0]->data)[i + 1]);
    return HEARTH_OK;
  };
  registerCustomOperator(custom.custom);
  const Model model = load(plainModel("Api_Count"));
  for (const char* device : kDevices) {
    const Compilation compilation = model.compile(on(device));
    const TensorInfo info = compilation.outputs().at(0);
    EXPECT_EQ(info.type, HEARTH_TYPE_INT32);
    EXPECT_THAT(info.dimensions, ElementsAre(1, 3));
    Execution execution = compilation.createExecution();
    std::vector<float> in = {1, 2, 3, 4};
    std::vector<int32_t> out(3);
    execution.setInput(0, in);
    execution.setOutput(0, out);
    execution.run();
    EXPECT_THAT(out, ElementsAre(2, 3, 4));
  }
}

// Keeps the positive numbers; their count is known only in a run.
TEST(CustomOperatorTest, ShapesMayDependOnValues) {
  TestOperator& custom = makeOperator("Api_Positive");
  const auto positive = [](const hearth_custom_call* call) {
    const auto* values = static_cast<const float*>(call->inputs[0]->data);
    std::vector<float> found;
    std::copy_if(values, values + call->inputs[0]->dimensions[0], std::back_inserter(found),
                 [](float value) { return value > 0; });
    return found;
  };
  custom.prepare = [positive](hearth_custom_call* call) {
    if (call->inputs[0]->data == nullptr) return HEARTH_INCOMPLETE;
    call->outputs[0]->rank = 1;
    call->outputs[0]->dimensions[0] = static_cast<uint32_t>(positive(call).size());
    return HEARTH_OK;
  };
  custom.compute = [positive](hearth_custom_call* call) {
    const std::vector<float> found = positive(call);
    std::ranges::copy(found, static_cast<float*>(call->outputs[0]->data));
    return HEARTH_OK;
  };
  registerCustomOperator(custom.custom);
  const Model model = load(plainModel("Api_Positive"));
  for (const char* device : kDevices) {
    SCOPED_TRACE(device);
    const Compilation compilation = model.compile(on(device));
    EXPECT_EQ(compilation.outputs().at(0).byteSize, 0u);
    EXPECT_THAT(run(compilation, {1, -2, 3, 4}), ElementsAre(1, 3, 4));
    EXPECT_THAT(run(compilation, {-1, -2, -3, 4}), ElementsAre(4));
    EXPECT_THAT(run(compilation, {-1, -2, -3, -4}), ElementsAre());
  }
  TestOperator& asking = makeOperator("Api_Asking");
  asking.prepare = [](hearth_custom_call*) {
    return HEARTH_INCOMPLETE;
  };
  registerCustomOperator(asking.custom);
  const Model never = load(plainModel("Api_Asking"));
  EXPECT_THAT(errorOf([&] { run(never.compile(on("hearth-cpu")), {1, 2, 3, 4}); }),
              HasSubstr("has them all"));
}

// Computes x + 1, the operator, twice that, the operator, on each device and in many threads at
// once.
TEST(CustomOperatorTest, SeveralOperatorsAmongOthersInSeveralThreads) {
  TestOperator& custom = makeOperator("Api_Among");
  std::atomic<int> running = 0;
  const auto compute = custom.compute;
  custom.compute = [&, compute](hearth_custom_call* call) {
    ++running;
    const hearth_status status = compute(call);
    --running;
    return status;
  };
  registerCustomOperator(custom.custom);
  ModelWriter writer;
  const int32_t input = writer.addTensor(TensorType::FLOAT32, {1, 64});
  std::vector<int32_t> tensors = {input};
  for (int i = 0; i < 4; ++i) tensors.push_back(writer.addTensor(TensorType::FLOAT32, {1, 64}));
  const int32_t one = writer.addConstant<float>(TensorType::FLOAT32, {1}, {1.0f});
  writer.addOperator(BuiltinOperator::ADD, {tensors[0], one}, {tensors[1]});
  writer.addCustom("Api_Among", {tensors[1]}, {tensors[2]});
  writer.addOperator(BuiltinOperator::ADD, {tensors[2], tensors[2]}, {tensors[3]});
  writer.addCustom("Api_Among", {tensors[3]}, {tensors[4]});
  writer.setArguments({input}, {tensors[4]});
  const Model model = load(writer);
  for (const char* device : kDevices) {
    SCOPED_TRACE(device);
    const Compilation compilation = model.compile(on(device));
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread)
      threads.emplace_back([&, thread] {
        for (int i = 0; i < 20; ++i) {
          const auto value = static_cast<float>(thread * 100 + i);
          EXPECT_THAT(run(compilation, std::vector<float>(64, value)), Each(8 * (value + 1)));
        }
      });
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(running, 0);
}

// A function of an operator may call the library and fork: no lock of the library is held.
TEST(CustomOperatorTest, FunctionsMayUseTheLibraryAndFork) {
  registerCustomOperator(makeOperator("Api_Inner").custom);
  static const Model* const inner = new Model(load(plainModel("Api_Inner")));
  TestOperator& custom = makeOperator("Api_Outer");
  const auto useLibrary = [] {
    EXPECT_THAT(run(inner->compile(on("hearth-cpu")), {1, 2, 3, 4}), ElementsAre(2, 4, 6, 8));
    const pid_t child = ::fork();
    if (child == 0) ::_exit(7);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 7);
  };
  const auto prepare = custom.prepare;
  const auto compute = custom.compute;
  custom.useState();
  custom.init = [=](hearth_custom_call*) {
    useLibrary();
    return HEARTH_OK;
  };
  custom.free = [=](hearth_custom_call*) {
    useLibrary();
  };
  custom.prepare = [=](hearth_custom_call* call) {
    useLibrary();
    return prepare(call);
  };
  custom.compute = [=](hearth_custom_call* call) {
    useLibrary();
    return compute(call);
  };
  registerCustomOperator(custom.custom);
  const Model model = load(plainModel("Api_Outer"));
  for (const char* device : kDevices)
    EXPECT_THAT(run(model.compile(on(device)), {1, 2, 3, 4}), ElementsAre(2, 4, 6, 8));
}

// A model that is large enough for the store: a layer, then the operator.
ModelWriter largeModel(const std::string& name) {
  constexpr int32_t kSize = 256;
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {1, kSize});
  std::vector<float> weights(size_t{kSize} * kSize);
  for (int32_t i = 0; i < kSize; ++i) weights[static_cast<size_t>(i) * (kSize + 1)] = 1;
  std::vector<uint8_t> bytes(weights.size() * sizeof(float));
  std::memcpy(bytes.data(), weights.data(), bytes.size());
  const int32_t filter =
      model.addConstantBytes(TensorType::FLOAT32, {kSize, kSize}, std::move(bytes));
  const int32_t middle = model.addTensor(TensorType::FLOAT32, {1, kSize});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {});
  model.addOperator(BuiltinOperator::FULLY_CONNECTED, {input, filter, -1}, {middle});
  model.addCustom(name, {middle}, {output});
  model.setArguments({input}, {output});
  return model;
}

class CustomStarts : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "hearth-custom-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    std::filesystem::create_directory(folder_ / "caches");
    path_ = folder_ / "model.tflite";
    const std::vector<uint8_t> bytes = largeModel("Api_Versioned").write();
    std::FILE* const file = std::fopen(path_.c_str(), "wb");
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
    std::fclose(file);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Starts the model in a process in which the operator is registered with this version, by which
  // it multiplies. Returns "cold", "warm" or "uncached", with " hit" if a compilation cache was
  // used, or an error message.
  std::string start(int32_t version, bool hasCacheFiles) {
    int pipe[2];
    if (::pipe(pipe) != 0) return "no pipe";
    const pid_t child = ::fork();
    if (child == 0) {
      const std::string outcome = startHere(version, hasCacheFiles);
      const bool isWritten =
          ::write(pipe[1], outcome.data(), outcome.size()) == static_cast<ssize_t>(outcome.size());
      ::_exit(isWritten ? 0 : 1);
    }
    ::close(pipe[1]);
    std::string outcome(1000, '\0');
    const ssize_t count = ::read(pipe[0], outcome.data(), outcome.size());
    ::close(pipe[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    outcome.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    return outcome;
  }

 private:
  std::string startHere(int32_t version, bool hasCacheFiles) const {
    try {
      TestOperator& custom = makeOperator("Api_Versioned", version);
      custom.compute = [version](hearth_custom_call* call) {
        for (size_t i = 0; i < 256; ++i)
          static_cast<float*>(call->outputs[0]->data)[i] =
              static_cast<const float*>(call->inputs[0]->data)[i] * static_cast<float>(version);
        return HEARTH_OK;
      };
      registerCustomOperator(custom.custom);
      CompileOptions options;
      options.device = "hearth-cpu";
      options.store = folder_ / "store";
      options.cache = HEARTH_CACHE_READ_WRITE;
      options.tuning = HEARTH_TUNING_OFF;
      if (hasCacheFiles) {
        options.cacheDir = folder_ / "caches";
        options.cacheToken = {5};
      }
      const Model model(path_);
      const Compilation compilation = model.compile(options);
      const std::vector<float> result = run(compilation, std::vector<float>(256, 3.0f));
      if (result != std::vector<float>(256, 3.0f * static_cast<float>(version)))
        return "wrong result";
      const StartReport report = compilation.startReport();
      const bool isHit =
          compilation.startReportJson().find("\"cache\": \"hit\"") != std::string::npos;
      flush();
      const char* const states[] = {"cold", "warm", "uncached"};
      return std::string(states[report.state]) + (isHit ? " hit" : "");
    } catch (const std::exception& exception) {
      return exception.what();
    }
  }

  std::filesystem::path folder_;
  std::filesystem::path path_;
};

TEST_F(CustomStarts, AnotherVersionIsAnotherPlan) {
  EXPECT_EQ(start(1, false), "cold");
  EXPECT_EQ(start(1, false), "warm");
  EXPECT_EQ(start(2, false), "cold");
  EXPECT_EQ(start(2, false), "warm");
  EXPECT_EQ(start(1, false), "warm");
}

TEST_F(CustomStarts, ACompilationCacheOfAnotherVersionIsNotUsed) {
  EXPECT_EQ(start(1, true), "cold");
  EXPECT_EQ(start(1, true), "warm hit");
  EXPECT_EQ(start(2, true), "cold");
  EXPECT_EQ(start(2, true), "warm hit");
}

}  // namespace
}  // namespace hearth
