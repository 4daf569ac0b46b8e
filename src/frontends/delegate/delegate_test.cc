// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "frontends/delegate/functions.h"
#include "frontends/delegate/testing/fake_runtime.h"
#include "tflite_abi/builtin_params.h"

namespace hearth::delegate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using tflite::schema::BuiltinOperator;
using Partitions = std::vector<std::vector<int32_t>>;

// The store is off, so that tests do not depend on earlier starts.
class DelegateTest : public testing::Test {
 protected:
  ~DelegateTest() override { functions_.destroy(delegate_); }

  TfLiteDelegate* make(std::vector<std::pair<const char*, const char*>> options = {
                           {"store_mode", "off"}}) {
    std::vector<const char*> keys;
    std::vector<const char*> values;
    for (const auto& [key, value] : options) {
      keys.push_back(key);
      values.push_back(value);
    }
    return functions_.create(keys.data(), values.data(), keys.size(),
                             [](const char* message) { sentence = message; });
  }

  static std::string sentence;
  const Functions& functions_ = *hearth_delegate_functions();
  TfLiteDelegate* delegate_ = make();
};

std::string DelegateTest::sentence;

TEST_F(DelegateTest, TakesAWholeGraph) {
  tflite_abi::ActivationParams none{0};
  const float two[] = {2, 2};
  FakeRuntime runtime;
  const int32_t input = runtime.addTensor(kTfLiteFloat32, {2});
  const int32_t twice = runtime.addTensor(kTfLiteFloat32, {2});
  const int32_t output = runtime.addTensor(kTfLiteFloat32, {2});
  const int32_t factor = runtime.addConstant(kTfLiteFloat32, {2}, two, sizeof(two));
  runtime.addNode(BuiltinOperator::MUL, {input, factor}, {twice}, &none);
  runtime.addNode(BuiltinOperator::RELU, {twice}, {output});
  runtime.setOutputs({output});
  ASSERT_EQ(runtime.apply(delegate_), kTfLiteOk);
  EXPECT_EQ(runtime.partitions(), (Partitions{{0, 1}}));
  ASSERT_EQ(runtime.allocate(), kTfLiteOk) << runtime.lastError();
  runtime.data<float>(input)[0] = 3;
  runtime.data<float>(input)[1] = -3;
  for (int run = 0; run < 2; ++run) {
    ASSERT_EQ(runtime.invoke(), kTfLiteOk) << runtime.lastError();
    EXPECT_EQ(runtime.data<float>(output)[0], 6);
    EXPECT_EQ(runtime.data<float>(output)[1], 0);
  }
}

// A chain in which only the runtime knows node 3.
TEST_F(DelegateTest, LeavesUnknownNodesToTheRuntime) {
  FakeRuntime runtime;
  std::vector<int32_t> tensors = {runtime.addTensor(kTfLiteFloat32, {4})};
  for (int i = 0; i < 8; ++i) {
    tensors.push_back(runtime.addTensor(kTfLiteFloat32, {4}));
    if (i == 3)
      runtime.addCustomNode("OnlyTheRuntimeKnows", {tensors[i]}, {tensors[i + 1]});
    else
      runtime.addNode(BuiltinOperator::NEG, {tensors[i]}, {tensors[i + 1]});
  }
  runtime.setOutputs({tensors.back()});
  ASSERT_EQ(runtime.apply(delegate_), kTfLiteOk);
  // The three nodes before it are too few for a partition of their own.
  EXPECT_EQ(runtime.partitions(), (Partitions{{4, 5, 6, 7}}));
  ASSERT_EQ(runtime.allocate(), kTfLiteOk) << runtime.lastError();
  runtime.data<float>(tensors[4])[0] = 5;
  ASSERT_EQ(runtime.invoke(), kTfLiteOk) << runtime.lastError();
  EXPECT_EQ(runtime.data<float>(tensors[8])[0], 5);
}

TEST_F(DelegateTest, LeavesShapesThatDependOnValuesAndWhatFollows) {
  tflite_abi::ActivationParams none{0};
  FakeRuntime runtime;
  const int32_t input = runtime.addTensor(kTfLiteFloat32, {2, 3});
  const int32_t shape = runtime.addTensor(kTfLiteInt32, {2});
  std::vector<int32_t> chain = {runtime.addTensor(kTfLiteFloat32, {2, 3})};
  runtime.addNode(BuiltinOperator::RESHAPE, {input, shape}, {chain[0]}, nullptr);
  for (int i = 0; i < 5; ++i) {
    chain.push_back(runtime.addTensor(kTfLiteFloat32, {2, 3}));
    runtime.addNode(BuiltinOperator::ADD, {chain[i], chain[i]}, {chain[i + 1]}, &none);
  }
  tflite_abi::DimensionsParams dimensions{};
  runtime.node(0).builtin_data = &dimensions;
  runtime.setOutputs({chain.back()});
  ASSERT_EQ(runtime.apply(delegate_), kTfLiteOk);
  EXPECT_THAT(runtime.partitions(), IsEmpty());
}

TEST_F(DelegateTest, ComputesWhatDependsOnShapesAlone) {
  FakeRuntime runtime;
  tflite_abi::DimensionsParams dimensions{};
  const int32_t input = runtime.addTensor(kTfLiteFloat32, {2, 3});
  const int32_t other = runtime.addTensor(kTfLiteFloat32, {3, 2});
  const int32_t shape = runtime.addTensor(kTfLiteInt32, {2});
  const int32_t output = runtime.addTensor(kTfLiteFloat32, {1, 1});
  runtime.addNode(BuiltinOperator::SHAPE, {other}, {shape});
  runtime.addNode(BuiltinOperator::RESHAPE, {input, shape}, {output}, &dimensions);
  runtime.setSignature(output, {-1, -1});
  runtime.setOutputs({output});
  ASSERT_EQ(runtime.apply(delegate_), kTfLiteOk);
  EXPECT_EQ(runtime.partitions(), (Partitions{{0, 1}}));
  ASSERT_EQ(runtime.allocate(), kTfLiteOk) << runtime.lastError();
  EXPECT_THAT(runtime.dimensions(output), ElementsAre(3, 2));
  runtime.data<float>(input)[5] = 7;
  ASSERT_EQ(runtime.invoke(), kTfLiteOk) << runtime.lastError();
  EXPECT_EQ(runtime.data<float>(output)[5], 7);
}

TEST_F(DelegateTest, InputsAreResized) {
  FakeRuntime runtime;
  const int32_t input = runtime.addTensor(kTfLiteFloat32, {1, 2});
  const int32_t middle = runtime.addTensor(kTfLiteFloat32, {1, 2});
  const int32_t output = runtime.addTensor(kTfLiteFloat32, {1, 2});
  runtime.addNode(BuiltinOperator::ABS, {input}, {middle});
  runtime.addNode(BuiltinOperator::NEG, {middle}, {output});
  runtime.setOutputs({output});
  ASSERT_EQ(runtime.apply(delegate_), kTfLiteOk);
  // More large shapes than are kept, and some of them again.
  constexpr int32_t kLarge = 10000;
  for (const int32_t rows :
       {1, 3, kLarge, 2, kLarge + 1, 3, kLarge + 2, kLarge + 3, kLarge + 4, 1, 3, kLarge}) {
    runtime.resize(input, {rows, 2});
    ASSERT_EQ(runtime.allocate(), kTfLiteOk) << runtime.lastError();
    EXPECT_THAT(runtime.dimensions(output), ElementsAre(rows, 2));
    for (int32_t i = 0; i < 2 * rows; ++i) runtime.data<float>(input)[i] = static_cast<float>(-i);
    ASSERT_EQ(runtime.invoke(), kTfLiteOk) << runtime.lastError();
    for (int32_t i = 0; i < 2 * rows; ++i)
      EXPECT_EQ(runtime.data<float>(output)[i], static_cast<float>(-i));
  }
}

TEST_F(DelegateTest, AnInputOfAWrongShapeIsAnErrorWithASentence) {
  tflite_abi::ActivationParams none{0};
  FakeRuntime runtime;
  const int32_t left = runtime.addTensor(kTfLiteFloat32, {2});
  const int32_t right = runtime.addTensor(kTfLiteFloat32, {2});
  const int32_t output = runtime.addTensor(kTfLiteFloat32, {2});
  runtime.addNode(BuiltinOperator::ADD, {left, right}, {output}, &none);
  runtime.setOutputs({output});
  ASSERT_EQ(runtime.apply(delegate_), kTfLiteOk);
  ASSERT_EQ(runtime.partitions().size(), 1u);
  runtime.resize(left, {3});
  EXPECT_EQ(runtime.allocate(), kTfLiteError);
  EXPECT_THAT(runtime.lastError(), HasSubstr("Hearth: "));
  runtime.resize(left, {-3});
  EXPECT_EQ(runtime.allocate(), kTfLiteError);
  EXPECT_THAT(runtime.lastError(), HasSubstr("negative dimension"));
}

// One step of an RNN with weights 1 and 2, whose state is in the runtime's memory.
TEST_F(DelegateTest, VariablesStayInTheRuntimesMemory) {
  tflite_abi::RnnParams params{0, false};
  const float one[] = {1};
  const float two[] = {2};
  const float zero[] = {0};
  FakeRuntime runtime;
  const int32_t input = runtime.addTensor(kTfLiteFloat32, {1, 1});
  const int32_t weights = runtime.addConstant(kTfLiteFloat32, {1, 1}, one, sizeof(one));
  const int32_t recurrent = runtime.addConstant(kTfLiteFloat32, {1, 1}, two, sizeof(two));
  const int32_t bias = runtime.addConstant(kTfLiteFloat32, {1}, zero, sizeof(zero));
  const int32_t state = runtime.addVariable(kTfLiteFloat32, {1, 1});
  const int32_t output = runtime.addTensor(kTfLiteFloat32, {1, 1});
  runtime.addNode(BuiltinOperator::RNN, {input, weights, recurrent, bias, state}, {output},
                  &params);
  runtime.setOutputs({output});
  ASSERT_EQ(runtime.apply(delegate_), kTfLiteOk);
  ASSERT_EQ(runtime.partitions().size(), 1u);
  ASSERT_EQ(runtime.allocate(), kTfLiteOk) << runtime.lastError();
  *runtime.data<float>(input) = 1;
  for (const float expected : {1.0f, 3.0f, 7.0f}) {
    ASSERT_EQ(runtime.invoke(), kTfLiteOk) << runtime.lastError();
    EXPECT_EQ(*runtime.data<float>(output), expected);
    EXPECT_EQ(*runtime.data<float>(state), expected);
  }
  *runtime.data<float>(state) = 0;  // as the runtime resets its variables
  ASSERT_EQ(runtime.invoke(), kTfLiteOk);
  EXPECT_EQ(*runtime.data<float>(output), 1);
}

TEST_F(DelegateTest, ConstantsMayBeFreedAfterwards) {
  tflite_abi::FullyConnectedParams params{};
  FakeRuntime runtime;
  auto weights = std::make_unique<std::vector<int8_t>>(std::vector<int8_t>{1, 2, 3, 4});
  auto bias = std::make_unique<std::vector<int32_t>>(std::vector<int32_t>{10, 20});
  const int32_t input = runtime.addTensor(kTfLiteInt8, {1, 2});
  const int32_t weight = runtime.addConstant(kTfLiteInt8, {2, 2}, weights->data(), 4);
  const int32_t addend = runtime.addConstant(kTfLiteInt32, {2}, bias->data(), 8);
  const int32_t output = runtime.addTensor(kTfLiteInt8, {1, 2});
  runtime.quantize(input, {1}, {0});
  runtime.quantize(weight, {1, 1}, {0, 0});
  runtime.quantize(addend, {1, 1}, {0, 0});
  runtime.quantize(output, {1}, {0});
  runtime.addNode(BuiltinOperator::FULLY_CONNECTED, {input, weight, addend}, {output}, &params, 4);
  runtime.setOutputs({output});
  ASSERT_EQ(runtime.apply(delegate_), kTfLiteOk);
  ASSERT_EQ(runtime.partitions().size(), 1u);
  std::ranges::fill(*weights, 0);
  std::ranges::fill(*bias, 0);
  weights.reset();
  bias.reset();
  ASSERT_EQ(runtime.allocate(), kTfLiteOk) << runtime.lastError();
  runtime.data<int8_t>(input)[0] = 1;
  runtime.data<int8_t>(input)[1] = 2;
  ASSERT_EQ(runtime.invoke(), kTfLiteOk) << runtime.lastError();
  EXPECT_EQ(runtime.data<int8_t>(output)[0], 1 + 4 + 10);
  EXPECT_EQ(runtime.data<int8_t>(output)[1], 3 + 8 + 20);
}

TEST_F(DelegateTest, SeveralInterpretersInSeveralThreads) {
  std::vector<std::thread> threads;
  std::vector<float> results(4);
  for (size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] {
      FakeRuntime runtime;
      const int32_t input = runtime.addTensor(kTfLiteFloat32, {8});
      const int32_t output = runtime.addTensor(kTfLiteFloat32, {8});
      runtime.addNode(BuiltinOperator::SQUARE, {input}, {output});
      runtime.setOutputs({output});
      if (runtime.apply(delegate_) != kTfLiteOk || runtime.allocate() != kTfLiteOk) return;
      runtime.data<float>(input)[7] = static_cast<float>(i + 1);
      if (runtime.invoke() == kTfLiteOk) results[i] = runtime.data<float>(output)[7];
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(results, ElementsAre(1, 4, 9, 16));
}

TEST_F(DelegateTest, ARuntimeThatLacksOrRefusesAFunction) {
  const auto graph = [](FakeRuntime* runtime) {
    const int32_t input = runtime->addTensor(kTfLiteFloat32, {2});
    const int32_t output = runtime->addTensor(kTfLiteFloat32, {2});
    runtime->addNode(BuiltinOperator::ABS, {input}, {output});
    runtime->setOutputs({output});
  };
  FakeRuntime old;
  graph(&old);
  old.context()->PreviewDelegatePartitioning = nullptr;
  EXPECT_EQ(old.apply(delegate_), kTfLiteOk);
  EXPECT_THAT(old.partitions(), IsEmpty());
  FakeRuntime refusing;
  graph(&refusing);
  refusing.refusesToPartition = true;
  EXPECT_EQ(refusing.apply(delegate_), kTfLiteOk);
  EXPECT_THAT(refusing.partitions(), IsEmpty());
}

TEST_F(DelegateTest, TensorsThatDoNotExist) {
  FakeRuntime runtime;
  const int32_t input = runtime.addTensor(kTfLiteFloat32, {2});
  const int32_t output = runtime.addTensor(kTfLiteFloat32, {2});
  runtime.addNode(BuiltinOperator::ABS, {99}, {output});
  runtime.addNode(BuiltinOperator::ABS, {-7}, {output});
  runtime.addNode(BuiltinOperator::ABS, {input}, {-1});
  runtime.addNode(BuiltinOperator::ABS, {input}, {1 << 30});
  ASSERT_EQ(runtime.apply(delegate_), kTfLiteOk);
  EXPECT_THAT(runtime.partitions(), IsEmpty());
}

TEST_F(DelegateTest, TypesAndQuantisationsThatItDoesNotTake) {
  for (const int kind : {0, 1, 2, 3}) {
    FakeRuntime runtime;
    const int32_t input = runtime.addTensor(kTfLiteFloat32, {2});
    const int32_t output = runtime.addTensor(kTfLiteFloat32, {2});
    runtime.addNode(BuiltinOperator::ABS, {input}, {output});
    runtime.setOutputs({output});
    TfLiteTensor& tensor = runtime.tensor(kind % 2 == 0 ? input : output);
    switch (kind) {
      case 0:
        tensor.type = kTfLiteString;
        break;
      case 1:
        tensor.type = static_cast<TfLiteType>(77);
        break;
      case 2:
        tensor.quantization = {static_cast<TfLiteQuantizationType>(3), &tensor};
        break;
      default:
        tensor.quantization = {kTfLiteAffineQuantization, nullptr};
        break;
    }
    EXPECT_EQ(runtime.apply(delegate_), kTfLiteOk);
    EXPECT_THAT(runtime.partitions(), IsEmpty()) << kind;
  }
}

// -|x|, compiled.
void compileChain(TfLiteDelegate* delegate) {
  FakeRuntime runtime;
  const int32_t input = runtime.addTensor(kTfLiteFloat32, {1, 2});
  const int32_t middle = runtime.addTensor(kTfLiteFloat32, {1, 2});
  const int32_t output = runtime.addTensor(kTfLiteFloat32, {1, 2});
  runtime.addNode(BuiltinOperator::ABS, {input}, {middle});
  runtime.addNode(BuiltinOperator::NEG, {middle}, {output});
  runtime.setOutputs({output});
  ASSERT_EQ(runtime.apply(delegate), kTfLiteOk);
  ASSERT_EQ(runtime.allocate(), kTfLiteOk) << runtime.lastError();
}

std::filesystem::path makeFolder() {
  std::string pattern = testing::TempDir() + "hearth-delegate-XXXXXX";
  EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
  return pattern;
}

// What is computed in half precision is another compilation.
TEST_F(DelegateTest, ACacheFolderTellsHalfPrecisionApart) {
  const std::filesystem::path folder = makeFolder();
  const auto filesWith = [&](const char* allowsFp16) {
    TfLiteDelegate* const delegate = make({{"store_mode", "off"},
                                           {"device", "hearth-cpu"},
                                           {"cache_dir", folder.c_str()},
                                           {"model_token", "chain"},
                                           {"allow_fp16", allowsFp16}});
    compileChain(delegate);
    functions_.destroy(delegate);
    return std::distance(std::filesystem::directory_iterator(folder), {});
  };
  const auto first = filesWith("no");
  EXPECT_GT(first, 0);
  EXPECT_EQ(filesWith("no"), first);
  EXPECT_EQ(filesWith("yes"), 2 * first);
  std::filesystem::remove_all(folder);
}

TEST_F(DelegateTest, AReportHasALineForEachPartition) {
  const std::filesystem::path folder = makeFolder();
  const std::filesystem::path path = folder / "report";
  ::setenv("HEARTH_REPORT", path.c_str(), 1);
  compileChain(delegate_);
  ::unsetenv("HEARTH_REPORT");
  compileChain(delegate_);
  std::ifstream report(path);
  const std::string lines((std::istreambuf_iterator<char>(report)), {});
  EXPECT_EQ(std::ranges::count(lines, '\n'), 1) << lines;
  EXPECT_THAT(lines, HasSubstr("\"prepare_ms\""));
  std::filesystem::remove_all(folder);
}

TEST_F(DelegateTest, WrongOptionsAreSentences) {
  EXPECT_EQ(make({{"colour", "red"}}), nullptr);
  EXPECT_THAT(sentence, HasSubstr("The option \"colour\" is not known; the delegate has "
                                  "allow_fp16, cache_dir, device, "));
  EXPECT_EQ(make({{"threads", "many"}}), nullptr);
  EXPECT_THAT(sentence, HasSubstr("threads"));
  EXPECT_EQ(make({{"store", nullptr}}), nullptr);
  EXPECT_THAT(sentence, HasSubstr("Option 0 of 1 has no name or no value."));
  // A caller that passes no function for the message, and one that counts in 32 bits.
  const char* const key = "colour";
  EXPECT_EQ(functions_.create(&key, &key, 1, nullptr), nullptr);
  TfLiteDelegate* const made = functions_.create(nullptr, nullptr, size_t{0xABCD} << 32, nullptr);
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->opaque_delegate_builder, nullptr);
  functions_.destroy(made);
  functions_.destroy(nullptr);
}

}  // namespace
}  // namespace hearth::delegate
