// SPDX-License-Identifier: Apache-2.0
// Inputs that get other shapes than the model declares, for a program that opens the library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "frontends/tflite/testing/model_writer.h"
#include "frontends/tflite_c/testing/library.h"
#include "hearth/hearth.hpp"

namespace hearth::tflite_c::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tflite::ModelWriter;
using tflite::schema::BuiltinOperator;
using tflite::schema::TensorType;

// (input + input) + input, as the first model of many tests of TensorFlow Lite, of shape [2].
ModelWriter sumModel() {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {2});
  const int32_t twice = model.addTensor(TensorType::FLOAT32, {2});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {2});
  model.addOperator(BuiltinOperator::ADD, {input, input}, {twice}, tflite::schema::AddOptionsT());
  model.addOperator(BuiltinOperator::ADD, {twice, input}, {output}, tflite::schema::AddOptionsT());
  model.setArguments({input}, {output});
  return model;
}

std::vector<int> shapeOf(const TensorStruct& tensor) {
  return {tensor.dims->data, tensor.dims->data + tensor.dims->size};
}

std::vector<uint8_t> bytesOf(const TensorStruct& tensor) {
  const auto* const data = static_cast<const uint8_t*>(tensor.data);
  return {data, data + tensor.bytes};
}

// Resizes input 0, allocates and runs the program with ones; returns output 0.
std::vector<float> runWithOnes(Program* program, const std::vector<int>& shape) {
  EXPECT_EQ(program->resize(0, shape), kOk);
  EXPECT_EQ(program->allocate(), kOk) << program->messages();
  TensorStruct& input = *program->input(0);
  std::fill_n(static_cast<float*>(input.data), input.bytes / sizeof(float), 1.0f);
  EXPECT_EQ(program->invoke(), kOk) << program->messages();
  const TensorStruct& output = *program->output(0);
  const auto* const data = static_cast<const float*>(output.data);
  return {data, data + output.bytes / sizeof(float)};
}

TEST(Resizing, FixedShapesBecomeOthersOfAnyRank) {
  Program program(sumModel().write());
  ASSERT_TRUE(program.create()) << program.messages();
  const std::vector<std::vector<int>> shapes = {{2}, {5}, {1, 8, 8, 3}, {}, {2, 3}, {2}};
  for (const std::vector<int>& shape : shapes) {
    const std::vector<float> results = runWithOnes(&program, shape);
    EXPECT_EQ(shapeOf(*program.output(0)), shape);
    size_t count = 1;
    for (const int dim : shape) count *= static_cast<size_t>(dim);
    EXPECT_EQ(results.size(), count);
    EXPECT_THAT(results, Each(3.0f));
  }
}

TEST(Resizing, ManyShapesAlternate) {
  Program program(sumModel().write());
  ASSERT_TRUE(program.create()) << program.messages();
  // More than stay prepared, forwards and backwards.
  for (int size = 1; size < 40; ++size)
    EXPECT_EQ(runWithOnes(&program, {size < 20 ? size : 40 - size}),
              std::vector<float>(static_cast<size_t>(size < 20 ? size : 40 - size), 3.0f));
}

// A sum along dimension 0, which leaves rank 0.
TEST(Resizing, RankZeroInTheFileMayBecomeAnotherRank) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {4});
  const int32_t axis = model.addConstant<int32_t>(TensorType::INT32, {1}, {0});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {});
  model.addOperator(BuiltinOperator::SUM, {input, axis}, {output},
                    tflite::schema::ReducerOptionsT());
  model.setArguments({input}, {output});
  Program program(model.write());
  ASSERT_TRUE(program.create()) << program.messages();
  EXPECT_THAT(runWithOnes(&program, {4}), ElementsAre(4));
  EXPECT_THAT(runWithOnes(&program, {3, 2}), ElementsAre(3, 3));
  EXPECT_THAT(shapeOf(*program.output(0)), ElementsAre(2));
}

TEST(Resizing, InputsMayHaveNoElements) {
  Program program(sumModel().write());
  ASSERT_TRUE(program.create()) << program.messages();
  for (const std::vector<int>& shape : {std::vector<int>{0}, {2}, {3, 0}, {0, 5}, {3}}) {
    const std::vector<float> results = runWithOnes(&program, shape);
    EXPECT_EQ(shapeOf(*program.output(0)), shape);
    EXPECT_THAT(results, Each(3.0f));
  }
}

// A reduction over dimension 0 of a vector, then 2 is added.
ModelWriter reduction(BuiltinOperator kind) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {4});
  const int32_t axis = model.addConstant<int32_t>(TensorType::INT32, {1}, {0});
  const int32_t two = model.addConstant<float>(TensorType::FLOAT32, {}, {2});
  const int32_t reduced = model.addTensor(TensorType::FLOAT32, {});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {});
  model.addOperator(kind, {input, axis}, {reduced}, tflite::schema::ReducerOptionsT());
  model.addOperator(BuiltinOperator::ADD, {reduced, two}, {output}, tflite::schema::AddOptionsT());
  model.setArguments({input}, {output});
  return model;
}

TEST(Resizing, ReductionsOfNoElementsHaveAResult) {
  for (const auto& [kind, ofFour, ofNone] :
       {std::tuple{BuiltinOperator::SUM, 6.0f, 2.0f},
        {BuiltinOperator::REDUCE_PROD, 3.0f, 3.0f},
        {BuiltinOperator::REDUCE_MAX, 3.0f, -std::numeric_limits<float>::infinity()}}) {
    Program program(reduction(kind).write());
    ASSERT_TRUE(program.create()) << program.messages();
    EXPECT_THAT(runWithOnes(&program, {4}), ElementsAre(ofFour));
    EXPECT_THAT(runWithOnes(&program, {0}), ElementsAre(ofNone));
    EXPECT_THAT(runWithOnes(&program, {4}), ElementsAre(ofFour));
    EXPECT_THAT(runWithOnes(&program, {0, 2}), ElementsAre(ofNone, ofNone));
  }
}

// The sum of no elements and the second input: nothing runs that could add them.
TEST(Resizing, OutputsThatDependOnOtherInputsNeedElementsInAll) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {4});
  const int32_t other = model.addTensor(TensorType::FLOAT32, {1});
  const int32_t axis = model.addConstant<int32_t>(TensorType::INT32, {1}, {0});
  const int32_t sum = model.addTensor(TensorType::FLOAT32, {});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {1});
  model.addOperator(BuiltinOperator::SUM, {input, axis}, {sum}, tflite::schema::ReducerOptionsT());
  model.addOperator(BuiltinOperator::ADD, {sum, other}, {output}, tflite::schema::AddOptionsT());
  model.setArguments({input, other}, {output});
  Program program(model.write());
  ASSERT_TRUE(program.create()) << program.messages();
  ASSERT_EQ(program.resize(0, {0}), kOk);
  EXPECT_EQ(program.allocate(), kError);
  EXPECT_THAT(program.messages(), HasSubstr("though an input has no elements"));
  EXPECT_EQ(program.invoke(), kError);
  ASSERT_EQ(program.resize(0, {4}), kOk);
  EXPECT_EQ(program.allocate(), kOk) << program.messages();
}

// What follows from a value is known after a run only, also behind another shape.
TEST(Resizing, ShapesMayDependOnValues) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {4});
  const int32_t output = model.addTensor(TensorType::INT64, {1, 1});
  model.tensor(output).shape_signature = {-1, 1};
  model.addOperator(BuiltinOperator::WHERE, {input}, {output});
  model.setArguments({input}, {output});
  Program program(model.write());
  ASSERT_TRUE(program.create()) << program.messages();
  runWithOnes(&program, {3});
  EXPECT_THAT(shapeOf(*program.output(0)), ElementsAre(3, 1));
  runWithOnes(&program, {2, 2});
  EXPECT_THAT(shapeOf(*program.output(0)), ElementsAre(4, 2));
}

TEST(Resizing, ImpossibleShapesAreErrorsAndTheInterpreterStaysUsable) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {1, 4});
  const int32_t weights =
      model.addConstant<float>(TensorType::FLOAT32, {2, 4}, {1, 1, 1, 1, 2, 2, 2, 2});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {1, 2});
  model.addOperator(BuiltinOperator::FULLY_CONNECTED, {input, weights, -1}, {output},
                    tflite::schema::FullyConnectedOptionsT());
  model.setArguments({input}, {output});
  Program program(model.write());
  ASSERT_TRUE(program.create()) << program.messages();
  EXPECT_THAT(runWithOnes(&program, {1, 4}), ElementsAre(4, 8));
  for (const std::vector<int>& shape : {std::vector<int>{1, 5}, {3}, {}}) {
    EXPECT_EQ(program.resize(0, shape), kOk);
    EXPECT_EQ(program.allocate(), kError);
    EXPECT_EQ(program.invoke(), kError);
    EXPECT_THAT(runWithOnes(&program, {3, 4}), ElementsAre(4, 8, 4, 8, 4, 8));
  }
  EXPECT_THAT(program.messages(), HasSubstr("FULLY_CONNECTED"));
  EXPECT_THAT(runWithOnes(&program, {1, 4}), ElementsAre(4, 8));
}

// The digits of the model's test, as a batch.
TEST(Resizing, GivesWhatHearthGivesForTheSameShapes) {
  struct Case {
    std::string path;
    std::vector<int> shape;
  };
  std::vector<Case> cases = {{HEARTH_TEST_MODEL, {3, 28, 28, 1}}};
  if (const char* folder = std::getenv("HEARTH_TEST_DATA")) {
    const std::string models = folder + std::string("/data/models/");
    cases.push_back({models + "mobilenet_v1_0.25_128_quant.tflite", {2, 128, 128, 3}});
    cases.push_back({models + "mobilenet_v1_0.75_192_quant.tflite", {3, 192, 192, 3}});
    cases.push_back({models + "person_detect.tflite", {2, 96, 96, 1}});
  }
  for (const auto& [path, shape] : cases) {
    SCOPED_TRACE(path);
    std::ifstream file(path, std::ios::binary);
    Program program({std::istreambuf_iterator<char>(file), {}});
    ASSERT_TRUE(program.create()) << program.messages();
    ASSERT_EQ(program.allocate(), kOk) << program.messages();
    ASSERT_EQ(program.resize(0, shape), kOk);
    ASSERT_EQ(program.allocate(), kOk) << program.messages();
    TensorStruct& input = *program.input(0);
    std::mt19937 random(1);
    if (input.type == 1)
      std::generate_n(static_cast<float*>(input.data), input.bytes / sizeof(float),
                      [&] { return static_cast<float>(random() % 1000) / 500 - 1; });
    else
      std::generate_n(static_cast<uint8_t*>(input.data), input.bytes,
                      [&] { return static_cast<uint8_t>(random()); });
    ASSERT_EQ(program.invoke(), kOk) << program.messages();

    hearth::CompileOptions options;
    options.threads = 1;
    options.shapes[""] = {shape.begin(), shape.end()};
    const hearth::Compilation compilation = hearth::Model(path).compile(options);
    hearth::Execution execution = compilation.createExecution();
    std::vector<uint8_t> expected(program.output(0)->bytes);
    execution.setInput(0, input.data, input.bytes);
    execution.setOutput(0, expected.data(), expected.size());
    execution.run();
    EXPECT_EQ(bytesOf(*program.output(0)), expected);
  }
}

}  // namespace
}  // namespace hearth::tflite_c::testing
