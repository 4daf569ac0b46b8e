// SPDX-License-Identifier: Apache-2.0
// Cache files of models with unknown shapes and with control flow: a start from them packs nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drivers/cpu/testing/model_cache_test_util.h"
#include "drivers/cpu/weights/packed_weights.h"
#include "hal/start_reason.h"

namespace hearth::cpu {
namespace {

constexpr auto kFloat = OperandType::kTensorFloat32;
constexpr auto kInt = OperandType::kTensorInt32;
constexpr auto kBool = OperandType::kTensorBool8;
constexpr uint32_t kWidth = 160;  // a square of weights is worth keeping in a store

// One argument of an execution.
struct Tensor {
  graph::Dimensions dimensions;
  std::vector<uint8_t> bytes;
};

template <typename T>
Tensor tensor(graph::Dimensions dimensions, const std::vector<T>& values) {
  const auto* const begin = reinterpret_cast<const uint8_t*>(values.data());
  return {std::move(dimensions), {begin, begin + values.size() * sizeof(T)}};
}

Tensor rowsOf(uint32_t count) {
  std::vector<float> values(size_t{count} * kWidth);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 23) / 12 - 1;
  return tensor({count, kWidth}, values);
}

// Arguments of one execution.
struct Case {
  std::vector<Tensor> inputs;
  std::vector<size_t> outputBytes;
};

// One whose output has as many rows.
Case caseOf(std::vector<Tensor> inputs, uint32_t rows) {
  return {std::move(inputs), {size_t{rows} * kWidth * sizeof(float)}};
}
Case rowsOnly(uint32_t count) {
  return caseOf({rowsOf(count)}, count);
}

// FULLY_CONNECTED with weights of its own.
void addLayer(hal::cts::ModelBuilder* builder, Constants* constants, uint32_t in, uint32_t out) {
  const uint32_t weights = constants->add(builder, {kWidth, kWidth});
  const uint32_t bias = constants->add(builder, {kWidth});
  builder->operation(OperationType::kFullyConnected, {in, weights, bias, builder->scalar(0)},
                     {out});
}

// Two layers over an unknown number of rows.
graph::Model ofAnyBatch(Constants* constants) {
  hal::cts::ModelBuilder builder;
  const uint32_t in = builder.input(kFloat, {0, kWidth});
  const uint32_t between = builder.temporary(kFloat, {0, kWidth});
  addLayer(&builder, constants, in, between);
  addLayer(&builder, constants, between, builder.output(kFloat, {0, kWidth}));
  return builder.model();
}

// One of two layers, over `rows` rows; 0 = unknown.
graph::Model withBranches(Constants* constants, uint32_t rows) {
  hal::cts::ModelBuilder builder;
  uint32_t branches[2];
  for (uint32_t& branch : branches) {
    branch = builder.beginSubgraph();
    const uint32_t in = builder.input(kFloat, {rows, kWidth});
    addLayer(&builder, constants, in, builder.output(kFloat, {rows, kWidth}));
  }
  builder.returnToMain();
  const uint32_t condition = builder.input(kBool, {1});
  const uint32_t in = builder.input(kFloat, {rows, kWidth});
  builder.operation(
      OperationType::kIf,
      {condition, builder.subgraphOperand(branches[0]), builder.subgraphOperand(branches[1]), in},
      {builder.output(kFloat, {rows, kWidth})});
  return builder.model();
}

// A layer and its LOGISTIC, three times.
graph::Model withLoop(Constants* constants) {
  hal::cts::ModelBuilder builder;
  const uint32_t condition = builder.beginSubgraph();
  uint32_t counter = builder.input(kInt, {1});
  builder.input(kFloat, {1, kWidth});
  builder.operation(OperationType::kLess, {counter, builder.constant<int32_t>(kInt, {1}, {3})},
                    {builder.output(kBool, {1})});
  const uint32_t body = builder.beginSubgraph();
  counter = builder.input(kInt, {1});
  uint32_t x = builder.input(kFloat, {1, kWidth});
  builder.operation(OperationType::kAdd,
                    {counter, builder.constant<int32_t>(kInt, {1}, {1}), builder.scalar(0)},
                    {builder.output(kInt, {1})});
  const uint32_t sum = builder.temporary(kFloat, {1, kWidth});
  addLayer(&builder, constants, x, sum);
  builder.operation(OperationType::kLogistic, {sum}, {builder.output(kFloat, {1, kWidth})});
  builder.returnToMain();
  counter = builder.input(kInt, {1});
  x = builder.input(kFloat, {1, kWidth});
  builder.operation(OperationType::kWhile,
                    {builder.subgraphOperand(condition), builder.subgraphOperand(body), counter, x},
                    {builder.output(kInt, {1}), builder.output(kFloat, {1, kWidth})});
  return builder.model();
}

// A layer, of whose eight rows SLICE takes as many as its input says, and one behind that.
graph::Model withCut(Constants* constants) {
  hal::cts::ModelBuilder builder;
  const uint32_t in = builder.input(kFloat, {8, kWidth});
  const uint32_t sizes = builder.input(kInt, {2});
  const uint32_t whole = builder.temporary(kFloat, {8, kWidth});
  const uint32_t some = builder.temporary(kFloat, {0, kWidth});
  addLayer(&builder, constants, in, whole);
  builder.operation(OperationType::kSlice,
                    {whole, builder.constant<int32_t>(kInt, {2}, {0, 0}), sizes}, {some});
  addLayer(&builder, constants, some, builder.output(kFloat, {0, kWidth}));
  return builder.model();
}

// A layer, of whose eight rows SLICE takes as many as its input says, and the sum of each row,
// times their number: the filter of that product follows from the shape behind the SLICE.
graph::Model withShapeFilter(Constants* constants) {
  hal::cts::ModelBuilder builder;
  const uint32_t in = builder.input(kFloat, {8, kWidth});
  const uint32_t sizes = builder.input(kInt, {2});
  const uint32_t whole = builder.temporary(kFloat, {8, kWidth});
  const uint32_t some = builder.output(kFloat, {0, kWidth});
  addLayer(&builder, constants, in, whole);
  builder.operation(OperationType::kSlice,
                    {whole, builder.constant<int32_t>(kInt, {2}, {0, 0}), sizes}, {some});
  const uint32_t shape = builder.temporary(kInt, {2});
  const uint32_t rows = builder.temporary(kInt, {1});
  const uint32_t number = builder.temporary(kFloat, {1});
  const uint32_t filter = builder.temporary(kFloat, {1, kWidth});
  builder.operation(OperationType::kShape, {some}, {shape});
  builder.operation(
      OperationType::kSlice,
      {shape, builder.constant<int32_t>(kInt, {1}, {0}), builder.constant<int32_t>(kInt, {1}, {1})},
      {rows});
  builder.operation(OperationType::kCast, {rows}, {number});
  const std::vector<float> ones(kWidth, 1.0f);
  builder.operation(OperationType::kMul,
                    {builder.constant<float>(kFloat, {1, kWidth}, ones), number, builder.scalar(0)},
                    {filter});
  builder.operation(OperationType::kFullyConnected,
                    {some, filter, builder.constant<float>(kFloat, {1}, {0.0f}), builder.scalar(0)},
                    {builder.output(kFloat, {0, 1})});
  return builder.model();
}

// Runs with both places of large bytes: the data cache and the store.
class FamilyCacheTest : public ModelCacheTest, public testing::WithParamInterface<bool> {
 protected:
  FamilyCacheTest() {
    if (GetParam()) useStore();
  }

  std::shared_ptr<hal::PreparedModel> compile(const graph::Model& model, hal::Cache cache) {
    auto prepared = device_->prepareModel(std::make_shared<const graph::Model>(model), options_,
                                          std::move(cache));
    EXPECT_TRUE(prepared) << prepared.error().toString();
    return prepared ? *prepared : nullptr;
  }
  std::shared_ptr<hal::PreparedModel> restored() {
    auto prepared = restore(files());
    EXPECT_TRUE(prepared) << prepared.error().toString();
    return prepared ? *prepared : nullptr;
  }

  // The bytes of all outputs.
  static std::vector<uint8_t> run(hal::PreparedModel& prepared, Case some) {
    std::vector<std::vector<uint8_t>> outputs;
    for (const size_t bytes : some.outputBytes) outputs.emplace_back(bytes);
    hal::Request request;
    const auto add = [](std::vector<hal::Argument>* arguments, std::vector<uint8_t>& bytes) {
      hal::Argument& argument = arguments->emplace_back();
      argument.kind = hal::Argument::Kind::kPointer;
      argument.pointer = bytes.data();
      argument.length = bytes.size();
      return &argument;
    };
    for (Tensor& input : some.inputs)
      add(&request.inputs, input.bytes)->dimensions = input.dimensions;
    for (std::vector<uint8_t>& output : outputs) add(&request.outputs, output);
    auto execution = prepared.createExecution(std::move(request));
    EXPECT_TRUE(execution) << execution.error().toString();
    if (!execution) return {};
    const hal::ExecutionResult result = (*execution)->compute({});
    EXPECT_TRUE(result.status) << result.status.error().toString();
    std::vector<uint8_t> all;
    for (const std::vector<uint8_t>& output : outputs)
      all.insert(all.end(), output.begin(), output.end());
    return all;
  }

  // That the model runs as it did, from the files alone, without any packing.
  void expectWarm(const std::vector<Case>& cases, const std::vector<std::vector<uint8_t>>& right) {
    const uint64_t before = PackedWeights::packedByThisThread();
    const auto prepared = restored();
    ASSERT_NE(prepared, nullptr);
    for (size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(run(*prepared, cases[i]), right[i]) << i;
    EXPECT_EQ(PackedWeights::packedByThisThread(), before);
    const hal::StartReport report = prepared->startReport();
    EXPECT_EQ(report.state, State::kWarm) << report.reason;
    EXPECT_TRUE(report.packedBytes.empty());
    EXPECT_EQ(report.mappedBytes != 0, GetParam());
  }

  // Compiles the model and runs it; the files then give the same.
  void expectComesBack(const graph::Model& model, const Constants& constants,
                       const std::vector<Case>& cases) {
    std::vector<std::vector<uint8_t>> right;
    {
      const auto prepared = compile(model, files());
      ASSERT_NE(prepared, nullptr);
      for (const Case& some : cases) right.push_back(run(*prepared, some));
      EXPECT_EQ(prepared->startReport().cacheProblem, "");
    }
    constants.wipe();
    expectWarm(cases, right);
  }
};

INSTANTIATE_TEST_SUITE_P(Store, FamilyCacheTest, testing::Bool(), [](const auto& info) {
  return info.param ? std::string("On") : std::string("Off");
});

TEST_P(FamilyCacheTest, APlanForExpectedShapesComesBack) {
  Constants constants(1);
  const graph::Model model = ofAnyBatch(&constants);
  options_.expectedInputs = {{1, kWidth}};
  const std::vector<Case> cases = {rowsOnly(1), rowsOnly(4), rowsOnly(8)};
  std::vector<std::vector<uint8_t>> right;
  for (const Case& some : cases) right.push_back(run(*compile(model, {}), some));
  ASSERT_NE(compile(model, files()), nullptr);
  constants.wipe();
  expectWarm(cases, right);
}

TEST_P(FamilyCacheTest, TheFirstExecutionNamesTheShapes) {
  Constants constants(2);
  expectComesBack(ofAnyBatch(&constants), constants, {rowsOnly(2), rowsOnly(1), rowsOnly(7)});
}

TEST_P(FamilyCacheTest, BranchesComeBack) {
  for (const uint32_t rows : {0u, 3u}) {
    SCOPED_TRACE(rows);
    Constants constants(3);
    const Tensor yes = tensor<uint8_t>({1}, {1});
    const Tensor no = tensor<uint8_t>({1}, {0});
    expectComesBack(withBranches(&constants, rows), constants,
                    {caseOf({yes, rowsOf(3)}, 3), caseOf({no, rowsOf(3)}, 3)});
  }
}

TEST_P(FamilyCacheTest, LoopsComeBack) {
  Constants constants(4);
  const Tensor zero = tensor<int32_t>({1}, {0});
  const Tensor two = tensor<int32_t>({1}, {2});
  const std::vector<size_t> outputs = {sizeof(int32_t), kWidth * sizeof(float)};
  expectComesBack(withLoop(&constants), constants,
                  {{{zero, rowsOf(1)}, outputs}, {{two, rowsOf(1)}, outputs}});
}

TEST_P(FamilyCacheTest, PartsOfAModelThatIsDividedComeBack) {
  Constants constants(5);
  const auto take = [](uint32_t rows) {
    return caseOf({rowsOf(8), tensor<uint32_t>({2}, {rows, kWidth})}, rows);
  };
  expectComesBack(withCut(&constants), constants, {take(3), take(5)});
}

// Each number of rows has a filter of its own, in the process that wrote the files and in those
// that start from them.
TEST_P(FamilyCacheTest, FiltersThatFollowFromShapesComeBack) {
  Constants constants(10);
  const graph::Model model = withShapeFilter(&constants);
  const auto expectRight = [](hal::PreparedModel& prepared) {
    for (const uint32_t count : {3u, 5u, 1u, 3u}) {
      SCOPED_TRACE(count);
      const std::vector<uint8_t> bytes =
          run(prepared, {{rowsOf(8), tensor<uint32_t>({2}, {count, kWidth})},
                         {count * kWidth * sizeof(float), count * sizeof(float)}});
      ASSERT_EQ(bytes.size(), count * (kWidth + 1) * sizeof(float));
      std::vector<float> numbers(bytes.size() / sizeof(float));
      std::memcpy(numbers.data(), bytes.data(), bytes.size());
      for (uint32_t row = 0; row < count; ++row) {
        double sum = 0;
        for (uint32_t i = 0; i < kWidth; ++i) sum += numbers[row * kWidth + i];
        EXPECT_NEAR(numbers[count * kWidth + row], count * sum, 1e-3) << row;
      }
    }
  };
  const auto first = compile(model, files());
  ASSERT_NE(first, nullptr);
  expectRight(*first);
  EXPECT_EQ(first->startReport().cacheProblem, "");
  constants.wipe();
  const auto again = restored();
  ASSERT_NE(again, nullptr);
  expectRight(*again);
}

// A model that was compiled, but never run, has told no shapes. The first start that runs it
// completes the files.
TEST_P(FamilyCacheTest, WhatTheFilesLackIsPackedOnce) {
  Constants constants(6);
  const graph::Model model = ofAnyBatch(&constants);
  const std::vector<uint8_t> two = run(*compile(model, {}), rowsOnly(2));
  const std::vector<uint8_t> five = run(*compile(model, {}), rowsOnly(5));
  ASSERT_NE(compile(model, files()), nullptr);
  constants.wipe();
  {
    const auto prepared = restored();
    ASSERT_NE(prepared, nullptr);
    EXPECT_EQ(run(*prepared, rowsOnly(2)), two);
    const hal::StartReport report = prepared->startReport();
    EXPECT_EQ(report.state, State::kCold);
    EXPECT_EQ(report.reason, hal::start_reason::kNotInCacheFiles);
    EXPECT_TRUE(report.packedBytes.contains("FULLY_CONNECTED"));
    EXPECT_EQ(report.cacheProblem, "");
  }
  expectWarm({rowsOnly(2), rowsOnly(5)}, {two, five});
}

// The part in front of the cut is packed when the model is compiled, the one behind it when it
// runs.
TEST_P(FamilyCacheTest, PartsAreAddedToThoseOfTheFiles) {
  Constants constants(8);
  const graph::Model model = withCut(&constants);
  const Case some = caseOf({rowsOf(8), tensor<uint32_t>({2}, {3, kWidth})}, 3);
  const std::vector<uint8_t> right = run(*compile(model, {}), some);
  ASSERT_NE(compile(model, files()), nullptr);
  constants.wipe();
  EXPECT_EQ(run(*restored(), some), right);
  expectWarm({some}, {right});
}

// A start that packs nothing leaves the files as they are.
TEST_P(FamilyCacheTest, WholeFilesAreNotWrittenAgain) {
  Constants constants(9);
  const graph::Model model = ofAnyBatch(&constants);
  const std::vector<uint8_t> right = run(*compile(model, files()), rowsOnly(2));
  const auto before = fs::file_time_type::clock::now() - std::chrono::hours(9);
  fs::last_write_time(modelFile(), before);
  expectWarm({rowsOnly(2)}, {right});
  EXPECT_EQ(fs::last_write_time(modelFile()), before);
}

// The client may change its constants once the model is freed, although files are being written.
TEST_P(FamilyCacheTest, AFreedModelIsWrittenBefore) {
  Constants constants(7);
  const graph::Model model = ofAnyBatch(&constants);
  const std::vector<uint8_t> right = run(*compile(model, {}), rowsOnly(2));
  EXPECT_EQ(run(*compile(model, files()), rowsOnly(2)), right);
  constants.wipe();
  expectWarm({rowsOnly(2)}, {right});
}

}  // namespace
}  // namespace hearth::cpu
