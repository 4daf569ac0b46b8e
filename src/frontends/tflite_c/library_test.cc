// SPDX-License-Identifier: Apache-2.0
// The rules of TensorFlow Lite's C interface, for a program that opens the library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <thread>

#include "frontends/tflite/testing/model_writer.h"
#include "frontends/tflite/testing/sample_models.h"
#include "frontends/tflite_c/testing/library.h"
#include "hearth/hearth.hpp"

namespace hearth::tflite_c::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tflite::ModelWriter;
using tflite::schema::BuiltinOperator;
using tflite::schema::TensorType;

constexpr int kCancelled = 8;
constexpr int kReadOnly = 1;
constexpr int kInArena = 2;
constexpr int kDynamic = 4;
constexpr int kCustom = 6;

// output = input + constant, with shape [1, 4]; the first dimension is open.
ModelWriter openModel() {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {1, 4});
  model.tensor(input).shape_signature = {-1, 4};
  const int32_t addend = model.addConstant<float>(TensorType::FLOAT32, {4}, {1, 2, 3, 4});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {1, 4});
  model.tensor(output).shape_signature = {-1, 4};
  model.addOperator(BuiltinOperator::ADD, {input, addend}, {output}, tflite::schema::AddOptionsT());
  model.setArguments({input}, {output});
  return model;
}

// output = input1 + input2, of uint8.
ModelWriter quantizedModel() {
  ModelWriter model;
  const int32_t one = model.addTensor(TensorType::UINT8, {2}, 0.5f, 10);
  const int32_t two = model.addTensor(TensorType::UINT8, {2}, 0.5f, 10);
  const int32_t sum = model.addTensor(TensorType::UINT8, {2}, 1.0f, 10);
  model.addOperator(BuiltinOperator::ADD, {one, two}, {sum}, tflite::schema::AddOptionsT());
  model.setArguments({one, two}, {sum});
  return model;
}

// counter += input, in a resource variable that begins with 7.
ModelWriter counterModel() {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::INT32, {1});
  tflite::schema::CallOnceOptionsT once;
  once.init_subgraph_index = 1;
  model.addOperator(BuiltinOperator::CALL_ONCE, {}, {}, once);
  tflite::schema::VarHandleOptionsT name;
  name.shared_name = "counter";
  const int32_t handle = model.addTensor(TensorType::RESOURCE, {1});
  model.addOperator(BuiltinOperator::VAR_HANDLE, {}, {handle}, name);
  const int32_t before = model.addTensor(TensorType::INT32, {1});
  const int32_t after = model.addTensor(TensorType::INT32, {1});
  model.addOperator(BuiltinOperator::READ_VARIABLE, {handle}, {before});
  model.addOperator(BuiltinOperator::ADD, {before, input}, {after}, tflite::schema::AddOptionsT());
  model.addOperator(BuiltinOperator::ASSIGN_VARIABLE, {handle, after}, {});
  model.setArguments({input}, {after});
  model.addSubgraph("initialisation");
  const int32_t inner = model.addTensor(TensorType::RESOURCE, {1});
  model.addOperator(BuiltinOperator::VAR_HANDLE, {}, {inner}, name);
  const int32_t seven = model.addConstant<int32_t>(TensorType::INT32, {1}, {7});
  model.addOperator(BuiltinOperator::ASSIGN_VARIABLE, {inner, seven}, {});
  return model;
}

std::vector<int> dimsOf(const TensorStruct& tensor) {
  return {tensor.dims->data, tensor.dims->data + tensor.dims->size};
}

template <typename T>
std::vector<T> valuesOf(const TensorStruct& tensor) {
  const auto* const data = static_cast<const T*>(tensor.data);
  return {data, data + tensor.bytes / sizeof(T)};
}

// Runs the program once with `values` in input 0; returns output 0.
std::vector<float> runOnce(Program* program, const std::vector<float>& values) {
  EXPECT_EQ(program->copyIn(program->input(0), values.data(), values.size() * sizeof(float)), kOk);
  EXPECT_EQ(program->invoke(), kOk) << program->messages();
  return valuesOf<float>(*program->output(0));
}

TEST(TfliteLibrary, HasEveryFunctionUnderItsVersion) {
  static constexpr const char* kNames[] = {
#define HEARTH_TFLITE_FUNCTION(name) #name,
#include "frontends/tflite_c/functions.inc"
#undef HEARTH_TFLITE_FUNCTION
  };
  EXPECT_EQ(std::size(kNames), 216u);
  ASSERT_NE(library(), nullptr) << ::dlerror();
  for (const char* name : kNames) EXPECT_NE(::dlvsym(library(), name, "VERS_1.0"), nullptr) << name;
  EXPECT_STREQ(function<const char*()>("TfLiteVersion")(), "2.17.1");
  EXPECT_EQ(function<int()>("TfLiteSchemaVersion")(), 3);
}

TEST(TfliteLibrary, RunsAModel) {
  Program program(quantizedModel().write());
  ASSERT_TRUE(program.create()) << program.messages();
  EXPECT_EQ(program.inputCount(), 2);
  EXPECT_EQ(program.outputCount(), 1);
  // No memory before the allocation.
  EXPECT_EQ(program.input(0)->data, nullptr);
  EXPECT_EQ(program.invoke(), kError);
  EXPECT_THAT(program.messages(), HasSubstr("not ready"));
  ASSERT_EQ(program.allocate(), kOk) << program.messages();
  const std::array<uint8_t, 2> one = {20, 30};
  const std::array<uint8_t, 2> two = {30, 50};
  EXPECT_EQ(program.copyIn(program.input(0), one.data(), 2), kOk);
  EXPECT_EQ(program.copyIn(program.input(1), two.data(), 2), kOk);
  ASSERT_EQ(program.invoke(), kOk) << program.messages();
  EXPECT_THAT(valuesOf<uint8_t>(*program.output(0)), ElementsAre(25, 40));
}

TEST(TfliteLibrary, DescribesTensorsByTheirIndexInTheFile) {
  Program program(quantizedModel().write());
  ASSERT_TRUE(program.create()) << program.messages();
  const TensorStruct* const sum = program.tensor(2);
  EXPECT_EQ(program.output(0), sum);
  EXPECT_EQ(sum->type, 3);
  EXPECT_THAT(dimsOf(*sum), ElementsAre(2));
  EXPECT_EQ(sum->scale, 1.0f);
  EXPECT_EQ(sum->zeroPoint, 10);
  EXPECT_EQ(sum->quantizationType, 1);
  EXPECT_EQ(sum->bytes, 2u);
  EXPECT_EQ(sum->bufferHandle, -1);
  EXPECT_EQ(program.tensor(-1), nullptr);
  EXPECT_EQ(program.tensor(3), nullptr);
  EXPECT_EQ(program.input(2), nullptr);
  EXPECT_EQ(program.output(-1), nullptr);
}

TEST(TfliteLibrary, ConstantsHaveTheirValuesAtOnce) {
  Program program(openModel().write());
  ASSERT_TRUE(program.create()) << program.messages();
  const TensorStruct* const addend = program.tensor(1);
  EXPECT_EQ(addend->allocationType, kReadOnly);
  EXPECT_THAT(valuesOf<float>(*addend), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(program.copyIn(program.tensor(1), addend->data, addend->bytes), kError);
}

TEST(TfliteLibrary, ResizesOpenDimensions) {
  Program program(openModel().write());
  ASSERT_TRUE(program.create()) << program.messages();
  EXPECT_EQ(program.input(0)->dimsSignature->data[0], -1);
  ASSERT_EQ(program.allocate(), kOk) << program.messages();
  EXPECT_THAT(runOnce(&program, {0, 0, 0, 0}), ElementsAre(1, 2, 3, 4));
  ASSERT_EQ(program.resize(0, {2, 4}), kOk);
  EXPECT_EQ(program.input(0)->data, nullptr);
  EXPECT_EQ(program.invoke(), kError);
  ASSERT_EQ(program.allocate(), kOk) << program.messages();
  EXPECT_THAT(dimsOf(*program.output(0)), ElementsAre(2, 4));
  EXPECT_EQ(program.output(0)->allocationType, kInArena);
  EXPECT_THAT(runOnce(&program, {0, 0, 0, 0, 1, 1, 1, 1}), ElementsAre(1, 2, 3, 4, 2, 3, 4, 5));
  // The same shape changes nothing.
  const void* const before = program.input(0)->data;
  EXPECT_EQ(program.resize(0, {2, 4}), kOk);
  EXPECT_EQ(program.input(0)->data, before);
  EXPECT_EQ(program.invoke(), kOk);
}

TEST(TfliteLibrary, RefusesWrongShapesAndSizes) {
  Program program(openModel().write());
  ASSERT_TRUE(program.create()) << program.messages();
  EXPECT_EQ(program.resize(1, {1, 4}), kError);
  EXPECT_EQ(program.resize(-1, {1, 4}), kError);
  EXPECT_EQ(program.resize(0, {-1, 4}), kError);
  EXPECT_EQ(program.resize(0, std::vector<int>(9, 1)), kError);
  EXPECT_EQ(program.resize(0, {INT32_MAX, INT32_MAX, INT32_MAX}), kError);
  EXPECT_EQ(function<int(void*, int, const int*, int)>("TfLiteInterpreterResizeInputTensor")(
                program.interpreter(), 0, nullptr, 2),
            kError);
  ASSERT_EQ(program.allocate(), kOk) << program.messages();
  const std::array<float, 4> values{};
  EXPECT_EQ(program.copyIn(program.input(0), values.data(), sizeof(values) - 1), kError);
  EXPECT_EQ(program.copyIn(program.input(0), nullptr, sizeof(values)), kError);
  EXPECT_EQ(program.copyIn(nullptr, values.data(), sizeof(values)), kError);
  std::array<float, 5> room{};
  EXPECT_EQ(program.copyOut(program.output(0), room.data(), sizeof(room)), kError);
  EXPECT_EQ(program.resize(0, {3}), kOk);
  EXPECT_EQ(program.allocate(), kError);
  EXPECT_THAT(program.messages(), HasSubstr("ADD"));
}

TEST(TfliteLibrary, OutputsOfUnknownSizeAreThereAfterARun) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {4});
  const int32_t output = model.addTensor(TensorType::INT64, {});
  model.tensor(output).shape_signature = {-1, 1};
  model.tensor(output).shape = {1, 1};
  model.addOperator(BuiltinOperator::WHERE, {input}, {output});
  model.setArguments({input}, {output});
  Program program(model.write());
  ASSERT_TRUE(program.create()) << program.messages();
  ASSERT_EQ(program.allocate(), kOk) << program.messages();
  EXPECT_EQ(program.output(0)->data, nullptr);
  EXPECT_EQ(program.output(0)->allocationType, kDynamic);
  const std::array<float, 4> values = {0, 1, 0, 1};
  EXPECT_EQ(program.copyIn(program.input(0), values.data(), sizeof(values)), kOk);
  ASSERT_EQ(program.invoke(), kOk) << program.messages();
  EXPECT_THAT(dimsOf(*program.output(0)), ElementsAre(2, 1));
  EXPECT_THAT(valuesOf<int64_t>(*program.output(0)), ElementsAre(1, 3));
}

TEST(TfliteLibrary, VariablesKeepTheirValuesUntilTheyAreReset) {
  Program program(counterModel().write());
  ASSERT_TRUE(program.create()) << program.messages();
  ASSERT_EQ(program.allocate(), kOk) << program.messages();
  const int32_t two = 2;
  ASSERT_EQ(program.copyIn(program.input(0), &two, sizeof(two)), kOk);
  for (const int32_t expected : {9, 11, 13}) {
    ASSERT_EQ(program.invoke(), kOk) << program.messages();
    EXPECT_THAT(valuesOf<int32_t>(*program.output(0)), ElementsAre(expected));
  }
  EXPECT_EQ(function<int(void*)>("TfLiteInterpreterResetVariableTensors")(program.interpreter()),
            kOk);
  ASSERT_EQ(program.invoke(), kOk) << program.messages();
  EXPECT_THAT(valuesOf<int32_t>(*program.output(0)), ElementsAre(9));
}

TEST(TfliteLibrary, TensorsLieInMemoryOfTheProgram) {
  Program program(openModel().write());
  ASSERT_TRUE(program.create()) << program.messages();
  alignas(64) std::array<float, 16> in{};
  alignas(64) std::array<float, 16> out{};
  const auto set = [&](int index, void* data, size_t bytes, int64_t flags) {
    const Allocation allocation{data, bytes};
    return function<int(void*, int, const Allocation*, int64_t)>(
        "TfLiteInterpreterSetCustomAllocationForTensor")(program.interpreter(), index, &allocation,
                                                         flags);
  };
  EXPECT_EQ(set(0, in.data(), 4, 0), kOk);
  EXPECT_EQ(program.allocate(), kError);
  EXPECT_THAT(program.messages(), HasSubstr("has 4 bytes; it needs 16"));
  EXPECT_EQ(set(0, in.data() + 1, 16, 0), kError);
  EXPECT_EQ(set(1, in.data(), 16, 0), kError);
  EXPECT_EQ(set(0, nullptr, 16, 0), kError);
  EXPECT_EQ(set(0, in.data(), 16, 0), kOk);
  EXPECT_EQ(set(2, out.data(), 16, 0), kOk);
  ASSERT_EQ(program.allocate(), kOk) << program.messages();
  EXPECT_EQ(program.input(0)->allocationType, kCustom);
  EXPECT_EQ(program.output(0)->data, out.data());
  in[0] = 5;
  ASSERT_EQ(program.invoke(), kOk) << program.messages();
  EXPECT_EQ(out[0], 6);
  // Other memory, not aligned, between two runs.
  EXPECT_EQ(set(2, out.data() + 5, 16, 1), kOk);
  ASSERT_EQ(program.invoke(), kOk) << program.messages();
  EXPECT_EQ(out[5], 6);
}

TEST(TfliteLibrary, SignaturesNameTensors) {
  ModelWriter model = openModel();
  auto signature = std::make_unique<tflite::schema::SignatureDefT>();
  signature->signature_key = "serve";
  signature->inputs.push_back(std::make_unique<tflite::schema::TensorMapT>());
  signature->inputs.back()->name = "x";
  signature->inputs.back()->tensor_index = 0;
  signature->outputs.push_back(std::make_unique<tflite::schema::TensorMapT>());
  signature->outputs.back()->name = "y";
  signature->outputs.back()->tensor_index = 2;
  model.model.signature_defs.push_back(std::move(signature));
  Program program(model.write());
  ASSERT_TRUE(program.create()) << program.messages();
  EXPECT_EQ(function<int(void*)>("TfLiteInterpreterGetSignatureCount")(program.interpreter()), 1);
  const auto key = function<const char*(void*, int)>("TfLiteInterpreterGetSignatureKey");
  EXPECT_STREQ(key(program.interpreter(), 0), "serve");
  EXPECT_EQ(key(program.interpreter(), 1), nullptr);
  const auto find = function<void*(void*, const char*)>("TfLiteInterpreterGetSignatureRunner");
  EXPECT_EQ(find(program.interpreter(), "none"), nullptr);
  void* const runner = find(program.interpreter(), "serve");
  ASSERT_NE(runner, nullptr);
  EXPECT_STREQ(function<const char*(void*, int)>("TfLiteSignatureRunnerGetInputName")(runner, 0),
               "x");
  const auto resize =
      function<int(void*, const char*, const int*, int)>("TfLiteSignatureRunnerResizeInputTensor");
  const std::array<int, 2> dims = {3, 4};
  const std::array<int, 2> wrong = {3, 5};
  EXPECT_EQ(resize(runner, "x", wrong.data(), 2), kError);
  EXPECT_EQ(resize(runner, "y", dims.data(), 2), kError);
  ASSERT_EQ(resize(runner, "x", dims.data(), 2), kOk) << program.messages();
  ASSERT_EQ(function<int(void*)>("TfLiteSignatureRunnerAllocateTensors")(runner), kOk);
  // The signature's tensors are the interpreter's.
  const auto input =
      function<TensorStruct*(void*, const char*)>("TfLiteSignatureRunnerGetInputTensor");
  EXPECT_EQ(input(runner, "x"), program.input(0));
  EXPECT_EQ(input(runner, "y"), nullptr);
  ASSERT_EQ(function<int(void*)>("TfLiteSignatureRunnerInvoke")(runner), kOk);
  const auto output =
      function<TensorStruct*(void*, const char*)>("TfLiteSignatureRunnerGetOutputTensor");
  EXPECT_THAT(valuesOf<float>(*output(runner, "y")),
              ElementsAre(1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4));
  function<void(void*)>("TfLiteSignatureRunnerDelete")(runner);
}

TEST(TfliteLibrary, AnInterpreterOutlivesItsModelAndARunnerItsInterpreter) {
  const std::vector<uint8_t> bytes = openModel().write();
  void* const model =
      function<void*(const void*, size_t)>("TfLiteModelCreate")(bytes.data(), bytes.size());
  void* const interpreter =
      function<void*(const void*, const void*)>("TfLiteInterpreterCreate")(model, nullptr);
  ASSERT_NE(interpreter, nullptr);
  function<void(void*)>("TfLiteModelDelete")(model);
  EXPECT_EQ(function<int(void*)>("TfLiteInterpreterAllocateTensors")(interpreter), kOk);
  EXPECT_EQ(function<int(void*)>("TfLiteInterpreterInvoke")(interpreter), kOk);
  function<void(void*)>("TfLiteInterpreterDelete")(interpreter);
}

TEST(TfliteLibrary, CancelsOnlyWhereThatIsEnabled) {
  Program program(openModel().write());
  ASSERT_TRUE(program.create()) << program.messages();
  const auto cancel = function<int(const void*)>("TfLiteInterpreterCancel");
  EXPECT_EQ(cancel(program.interpreter()), kError);

  Program other(openModel().write());
  EXPECT_EQ(function<int(void*, bool)>("TfLiteInterpreterOptionsEnableCancellation")(
                other.options(), true),
            kOk);
  ASSERT_TRUE(other.create()) << other.messages();
  ASSERT_EQ(other.allocate(), kOk);
  // What is cancelled is a run in flight, not the next one.
  EXPECT_EQ(cancel(other.interpreter()), kOk);
  EXPECT_EQ(other.invoke(), kOk);
  std::atomic<bool> isDone = false;
  std::thread canceller([&] {
    while (!isDone) cancel(other.interpreter());
  });
  int status = kOk;
  for (int i = 0; i < 100'000 && status == kOk; ++i) status = other.invoke();
  isDone = true;
  canceller.join();
  EXPECT_EQ(status, kCancelled);
  EXPECT_EQ(other.invoke(), kOk);
}

TEST(TfliteLibrary, TwoThreadsOnOneInterpreterGetErrors) {
  Program program(openModel().write());
  std::atomic<int> reports = 0;
  using Reporter = void (*)(void*, const char*, va_list);
  function<void(void*, Reporter, void*)>("TfLiteInterpreterOptionsSetErrorReporter")(
      program.options(),
      [](void* user, const char*, va_list) { ++*static_cast<std::atomic<int>*>(user); }, &reports);
  ASSERT_TRUE(program.create());
  ASSERT_EQ(program.allocate(), kOk);
  std::atomic<int> errors = 0;
  std::atomic<int> others = 0;
  const auto work = [&] {
    for (int i = 0; i < 3000; ++i) {
      const int status = program.invoke();
      if (status == kError) ++errors;
      if (status != kError && status != kOk) ++others;
    }
  };
  std::thread thread(work);
  work();
  thread.join();
  // Each failure was reported, and the interpreter goes on.
  EXPECT_EQ(errors, reports);
  EXPECT_EQ(others, 0);
  EXPECT_EQ(program.invoke(), kOk);
}

TEST(TfliteLibrary, DamagedModelsAreErrors) {
  const std::vector<uint8_t> whole = openModel().write();
  for (const size_t size : {size_t{1}, size_t{8}, whole.size() / 2}) {
    Program program({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)});
    EXPECT_EQ(program.model(), nullptr);
    EXPECT_FALSE(program.create());
    EXPECT_FALSE(program.messages().empty());
  }
  EXPECT_EQ(function<void*(const char*)>("TfLiteModelCreateFromFile")("/nowhere"), nullptr);
  EXPECT_EQ(function<void*(const char*)>("TfLiteModelCreateFromFile")(nullptr), nullptr);
  EXPECT_EQ(function<void*(const void*, size_t)>("TfLiteModelCreate")(nullptr, 9), nullptr);
  // Bytes at any address will do.
  std::vector<uint8_t> shifted(1);
  shifted.insert(shifted.end(), whole.begin(), whole.end());
  void* const model =
      function<void*(const void*, size_t)>("TfLiteModelCreate")(shifted.data() + 1, whole.size());
  EXPECT_NE(model, nullptr);
  function<void(void*)>("TfLiteModelDelete")(model);
}

TEST(TfliteLibrary, ModelsWithUnknownOperationsCanBeLookedAt) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {1});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {1});
  model.addCustom("NobodyKnowsIt", {input}, {output});
  model.setArguments({input}, {output});
  Program program(model.write());
  ASSERT_TRUE(program.create()) << program.messages();
  EXPECT_THAT(dimsOf(*program.output(0)), ElementsAre(1));
  EXPECT_EQ(program.allocate(), kError);
  EXPECT_THAT(program.messages(), HasSubstr("NobodyKnowsIt"));
  EXPECT_EQ(program.invoke(), kError);
}

struct XnnpackOptions {
  int threads;
  uint32_t flags;
  void* cache;
  bool variables;
  const char* path;
};

// output = input * weights, which are large enough to be worth keeping.
ModelWriter heavyModel() {
  constexpr int32_t kSize = 512;
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {1, kSize});
  std::vector<uint8_t> bytes(size_t{kSize} * kSize * sizeof(float));
  for (size_t i = 2; i < bytes.size(); i += 4) bytes[i] = static_cast<uint8_t>(i / 4 % 128);
  const int32_t weights =
      model.addConstantBytes(TensorType::FLOAT32, {kSize, kSize}, std::move(bytes));
  const int32_t output = model.addTensor(TensorType::FLOAT32, {1, kSize});
  model.addOperator(BuiltinOperator::FULLY_CONNECTED, {input, weights, -1}, {output},
                    tflite::schema::FullyConnectedOptionsT());
  model.setArguments({input}, {output});
  return model;
}

TEST(TfliteLibrary, TheWeightCacheOfXnnpackIsABundle) {
  Program program(heavyModel().write());
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("hearth-" + std::to_string(::getpid()) + ".bundle");
  XnnpackOptions options = function<XnnpackOptions()>("TfLiteXNNPackDelegateOptionsDefault")();
  options.threads = 1;
  options.path = path.c_str();
  void* const delegate =
      function<void*(const XnnpackOptions*)>("TfLiteXNNPackDelegateCreate")(&options);
  const XnnpackOptions* const kept =
      function<const XnnpackOptions*(void*)>("TfLiteXNNPackDelegateGetOptions")(delegate);
  EXPECT_EQ(kept->threads, 1);
  EXPECT_STREQ(kept->path, path.c_str());
  function<void(void*, void*)>("TfLiteInterpreterOptionsAddDelegate")(program.options(), delegate);
  ASSERT_TRUE(program.create()) << program.messages();
  // Nothing is packed before the allocation.
  EXPECT_FALSE(std::filesystem::exists(path));
  ::unsetenv("HEARTH_STORE_MODE");
  EXPECT_EQ(program.allocate(), kOk) << program.messages();
  EXPECT_EQ(program.invoke(), kOk) << program.messages();
  EXPECT_EQ(hearth_flush(0, nullptr), HEARTH_OK);
  ::setenv("HEARTH_STORE_MODE", "off", 1);
  EXPECT_TRUE(std::filesystem::exists(path));
  std::filesystem::remove(path);
  function<void(void*)>("TfLiteXNNPackDelegateDelete")(delegate);
}

// A program may free the bytes of a model once it has deleted what it made of them, although what
// was packed is still written to the store then.
TEST(TfliteLibrary, TheBytesOfAModelAreNotReadAfterItsEnd) {
  const std::string store =
      std::filesystem::temp_directory_path() / ("hearth-bytes-" + std::to_string(::getpid()));
  ::setenv("HEARTH_STORE", store.c_str(), 1);
  ::unsetenv("HEARTH_STORE_MODE");
  const std::vector<uint8_t> bytes = heavyModel().write();
  for (int round = 0; round < 20; ++round) {
    std::filesystem::remove_all(store);
    void* const memory =
        ::mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    std::memcpy(memory, bytes.data(), bytes.size());
    void* const model =
        function<void*(const void*, size_t)>("TfLiteModelCreate")(memory, bytes.size());
    void* const interpreter =
        function<void*(void*, void*)>("TfLiteInterpreterCreate")(model, nullptr);
    // Either may be the last one.
    if (round % 2 == 0) function<void(void*)>("TfLiteModelDelete")(model);
    EXPECT_EQ(function<int(void*)>("TfLiteInterpreterAllocateTensors")(interpreter), kOk);
    EXPECT_EQ(function<int(void*)>("TfLiteInterpreterInvoke")(interpreter), kOk);
    function<void(void*)>("TfLiteInterpreterDelete")(interpreter);
    if (round % 2 != 0) function<void(void*)>("TfLiteModelDelete")(model);
    ASSERT_EQ(::munmap(memory, bytes.size()), 0);
  }
  EXPECT_EQ(hearth_flush(0, nullptr), HEARTH_OK);
  EXPECT_FALSE(std::filesystem::is_empty(store));
  std::filesystem::remove_all(store);
  ::setenv("HEARTH_STORE_MODE", "off", 1);
  ::unsetenv("HEARTH_STORE");
}

struct NnapiOptions {
  int preference;
  const char* device;
  const char* folder;
  const char* token;
  int disallowsCpu;
  int allowsFp16;
  int partitions;
  void* library;
};

TEST(TfliteLibrary, TheOptionsOfNnapiNameDevices) {
  NnapiOptions options = function<NnapiOptions()>("TfLiteNnapiDelegateOptionsDefault")();
  EXPECT_EQ(options.preference, -1);
  EXPECT_EQ(options.disallowsCpu, 1);
  EXPECT_EQ(options.partitions, 3);
  for (const char* device : {"nnapi-reference", "hearth-cpu", "no-such-device"}) {
    options.device = device;
    void* const delegate =
        function<void*(const NnapiOptions*)>("TfLiteNnapiDelegateCreate")(&options);
    Program program(openModel().write());
    function<void(void*, void*)>("TfLiteInterpreterOptionsAddDelegate")(program.options(),
                                                                        delegate);
    const bool exists = std::string_view(device) != "no-such-device";
    EXPECT_EQ(program.create(), exists);
    if (exists) {
      EXPECT_EQ(program.allocate(), kOk);
      EXPECT_THAT(runOnce(&program, {1, 1, 1, 1}), ElementsAre(2, 3, 4, 5));
    } else {
      EXPECT_THAT(program.messages(), HasSubstr("no-such-device"));
      // With the fallback the model runs all the same.
      function<void(void*, bool)>("TfLiteInterpreterOptionsSetEnableDelegateFallback")(
          program.options(), true);
      EXPECT_TRUE(program.create());
    }
    function<void(void*)>("TfLiteNnapiDelegateDelete")(delegate);
  }
}

// As with NNAPI, caching takes a folder and a token.
TEST(TfliteLibrary, TheOptionsOfNnapiNameACacheFolder) {
  std::string folder = ::testing::TempDir() + "hearth-tflite-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  for (const char* token : {static_cast<const char*>(nullptr), "open"}) {
    NnapiOptions options = function<NnapiOptions()>("TfLiteNnapiDelegateOptionsDefault")();
    options.device = "hearth-cpu";
    options.folder = folder.c_str();
    options.token = token;
    void* const delegate =
        function<void*(const NnapiOptions*)>("TfLiteNnapiDelegateCreate")(&options);
    {
      Program program(openModel().write());
      function<void(void*, void*)>("TfLiteInterpreterOptionsAddDelegate")(program.options(),
                                                                          delegate);
      ASSERT_TRUE(program.create()) << program.messages();
      EXPECT_EQ(program.allocate(), kOk);
      EXPECT_THAT(runOnce(&program, {1, 1, 1, 1}), ElementsAre(2, 3, 4, 5));
    }
    function<void(void*)>("TfLiteNnapiDelegateDelete")(delegate);
    EXPECT_EQ(std::filesystem::is_empty(folder), token == nullptr);
  }
  EXPECT_EQ(hearth_flush(0, nullptr), HEARTH_OK);
  std::filesystem::remove_all(folder);
}

TEST(TfliteLibrary, FunctionsTakeNull) {
  for (const char* name :
       {"TfLiteInterpreterAllocateTensors", "TfLiteInterpreterInvoke", "TfLiteInterpreterCancel",
        "TfLiteInterpreterResetVariableTensors", "TfLiteSignatureRunnerInvoke",
        "TfLiteSignatureRunnerAllocateTensors", "TfLiteSignatureRunnerCancel"})
    EXPECT_EQ(function<int(void*)>(name)(nullptr), kError) << name;
  for (const char* name :
       {"TfLiteInterpreterDelete", "TfLiteModelDelete", "TfLiteInterpreterOptionsDelete",
        "TfLiteSignatureRunnerDelete", "TfLiteOperatorDelete", "TfLiteOpaqueDelegateDelete",
        "TfLiteNnapiDelegateDelete", "TfLiteXNNPackDelegateDelete", "TfLiteIntArrayFree",
        "TfLiteFloatArrayFree", "TfLiteQuantizationFree", "TfLiteSparsityFree", "TfLiteTensorFree",
        "TfLiteTensorDataFree", "TfLiteOpaqueTensorBuilderDelete"})
    function<void(void*)>(name)(nullptr);
  EXPECT_EQ(function<void*(void*, void*)>("TfLiteInterpreterCreate")(nullptr, nullptr), nullptr);
  EXPECT_EQ(function<int(void*)>("TfLiteInterpreterGetInputTensorCount")(nullptr), 0);
  EXPECT_EQ(function<void*(void*)>("TfLiteTensorData")(nullptr), nullptr);
  EXPECT_EQ(function<int(void*)>("TfLiteTensorNumDims")(nullptr), -1);
}

TEST(TfliteLibrary, TensorsHoldStrings) {
  TensorStruct tensor{};
  tensor.type = 5;
  const std::array<const char*, 3> texts = {"one", "", "three"};
  const std::array<int, 3> lengths = {3, 0, 5};
  ASSERT_EQ(function<int(void*, const char* const*, int, const int*)>(
                "TfLiteOpaqueTensorWriteStrings")(&tensor, texts.data(), 3, lengths.data()),
            kOk);
  EXPECT_EQ(function<int(void*)>("TfLiteOpaqueTensorGetStringCount")(&tensor), 3);
  EXPECT_THAT(dimsOf(tensor), ElementsAre(3));
  const auto get = function<int(void*, int, const char**, int*)>("TfLiteOpaqueTensorGetString");
  const char* text = nullptr;
  int length = 0;
  ASSERT_EQ(get(&tensor, 2, &text, &length), kOk);
  EXPECT_EQ(std::string_view(text, static_cast<size_t>(length)), "three");
  EXPECT_EQ(get(&tensor, 3, &text, &length), kError);
  // A table that lies.
  static_cast<int32_t*>(tensor.data)[3] = 1'000'000;
  EXPECT_EQ(get(&tensor, 2, &text, &length), kError);
  static_cast<int32_t*>(tensor.data)[0] = INT32_MAX;
  EXPECT_EQ(function<int(void*)>("TfLiteOpaqueTensorGetStringCount")(&tensor), -1);
  function<void(void*)>("TfLiteTensorFree")(&tensor);
  EXPECT_EQ(tensor.data, nullptr);
}

// What hearth.h gives for a model, with the inputs that `program` has.
std::vector<std::vector<uint8_t>> hearthResults(const std::string& path, Program* program) {
  const Model model(path);
  const Compilation compilation = model.compile();
  Execution execution = compilation.createExecution();
  std::vector<std::vector<uint8_t>> outputs;
  for (int i = 0; i < program->inputCount(); ++i)
    execution.setInput(static_cast<size_t>(i), program->input(i)->data, program->input(i)->bytes);
  for (int i = 0; i < program->outputCount(); ++i) {
    outputs.emplace_back(program->output(i)->bytes);
    execution.setOutput(static_cast<size_t>(i), outputs.back().data(), outputs.back().size());
  }
  execution.run();
  return outputs;
}

TEST(TfliteLibrary, GivesWhatHearthGives) {
  std::vector<std::string> paths = {HEARTH_TEST_MODEL};
  if (const char* folder = std::getenv("HEARTH_TEST_DATA"))
    for (const auto& entry :
         std::filesystem::directory_iterator(folder + std::string("/data/models")))
      if (entry.path().extension() == ".tflite") paths.push_back(entry.path());
  size_t compared = 0;
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    std::ifstream file(path, std::ios::binary);
    Program program({std::istreambuf_iterator<char>(file), {}});
    ASSERT_NE(program.model(), nullptr);
    ASSERT_TRUE(program.create()) << program.messages();
    if (program.allocate() != kOk) {  // it needs operators that a program has to bring
      EXPECT_THAT(program.messages(), HasSubstr("custom operation"));
      continue;
    }
    std::mt19937 random(1);
    for (int i = 0; i < program.inputCount(); ++i) {
      TensorStruct& input = *program.input(i);
      if (input.type == 1)
        std::generate_n(static_cast<float*>(input.data), input.bytes / sizeof(float),
                        [&] { return static_cast<float>(random() % 1000) / 500 - 1; });
      else
        std::generate_n(static_cast<uint8_t*>(input.data), input.bytes,
                        [&] { return static_cast<uint8_t>(random()); });
    }
    ASSERT_EQ(program.invoke(), kOk) << program.messages();
    const auto expected = hearthResults(path, &program);
    for (int i = 0; i < program.outputCount(); ++i)
      EXPECT_EQ(valuesOf<uint8_t>(*program.output(i)), expected[static_cast<size_t>(i)]);
    ++compared;
  }
  EXPECT_GT(compared, 0u);
}

}  // namespace
}  // namespace hearth::tflite_c::testing
