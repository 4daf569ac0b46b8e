// SPDX-License-Identifier: Apache-2.0
// Models with unknown dimensions: results, packed weights, and what is kept for each shape.
#include "drivers/cpu/dynamic_model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "drivers/cpu/testing/weight_session_test_util.h"
#include "hal/cts/model_builder.h"

namespace hearth::cpu {
namespace {

class DynamicModelTest : public WeightSessionTest {
 protected:
  // The test model for an unknown number of pictures.
  static TestModel ofAnyBatch(uint32_t seed) {
    TestModel test(seed);
    for (graph::Operand& operand : test.model.main().operands)
      if (!operand.isConstant() && !operand.dimensions.empty()) operand.dimensions[0] = 0;
    const graph::Operation& reshape = test.model.main().operations[2];
    const graph::Operand& shape = test.model.main().operands[reshape.inputs[1]];
    const int32_t open = -1;
    std::memcpy(test.model.constantBytes.data() + shape.location.offset, &open, sizeof open);
    return test;
  }

  // The results of the same model with a fixed number of pictures, without a store.
  std::vector<float> expected(uint32_t batch) {
    const TestModel fixed(kSeed, batch);
    save(fixed, "fixed.bin");
    return start(fixed, off(), "fixed.bin").output;
  }

  std::shared_ptr<hal::PreparedModel> prepare(const cache::StoreOptions& store,
                                              std::vector<graph::Dimensions> expectedInputs) {
    save(test_);
    auto pool = memory::Pool::openFile(folder_.path() / "model.bin");
    EXPECT_TRUE(pool) << pool.error().toString();
    auto model = std::make_shared<graph::Model>(test_.model);
    model->pools = {*pool};
    hal::PrepareOptions options;
    options.threads = 2;
    options.driverOptions = store.toTexts();
    options.expectedInputs = std::move(expectedInputs);
    auto prepared = device_->prepareModel(model, options, hal::Cache());
    EXPECT_TRUE(prepared) << prepared.error().toString();
    return prepared ? *prepared : nullptr;
  }

  static std::vector<float> run(hal::PreparedModel& prepared, uint32_t batch) {
    std::vector<float> input = pictures(batch);
    std::vector<float> output(batch * kClasses);
    hal::Request request;
    request.inputs.resize(1);
    request.inputs[0].kind = hal::Argument::Kind::kPointer;
    request.inputs[0].pointer = input.data();
    request.inputs[0].length = input.size() * sizeof(float);
    request.inputs[0].dimensions = {batch, kSide, kSide, kChannels};
    request.outputs.resize(1);
    request.outputs[0].kind = hal::Argument::Kind::kPointer;
    request.outputs[0].pointer = output.data();
    request.outputs[0].length = output.size() * sizeof(float);
    auto execution = prepared.createExecution(std::move(request));
    EXPECT_TRUE(execution) << execution.error().toString();
    if (!execution) return {};
    const hal::ExecutionResult result = (*execution)->compute({});
    EXPECT_TRUE(result.status) << result.status.error().toString();
    EXPECT_EQ(result.outputShapes[0].dimensions, graph::Dimensions({batch, kClasses}));
    return output;
  }

  static uint64_t packedBytes(const hal::StartReport& report) {
    uint64_t bytes = 0;
    for (const auto& [kind, count] : report.packedBytes) bytes += count;
    return bytes;
  }

  static constexpr uint32_t kSeed = 7;
  const TestModel test_ = ofAnyBatch(kSeed);
  const std::vector<graph::Dimensions> one_ = {{1, kSide, kSide, kChannels}};
};

TEST_F(DynamicModelTest, GivesTheResultsOfTheFixedModelForEachShape) {
  const auto prepared = prepare(off(), one_);
  for (const uint32_t batch : {1u, 4u, 8u, 3u, 1u, 4u})
    EXPECT_EQ(run(*prepared, batch), expected(batch)) << batch;
  EXPECT_EQ(prepared->startReport().shapes, 4u);
}

TEST_F(DynamicModelTest, ExpectedShapesArePreparedAtOnceAndOthersPackNothing) {
  const auto prepared = prepare(options(), one_);
  const hal::StartReport first = prepared->startReport();
  EXPECT_EQ(first.state, State::kCold) << first.reason;
  EXPECT_EQ(first.shapes, 1u);
  EXPECT_GT(packedBytes(first), 1'000'000u);
  const uint64_t before = PackedWeights::packedByThisThread();
  run(*prepared, 5);
  run(*prepared, 2);
  EXPECT_EQ(PackedWeights::packedByThisThread(), before);
  EXPECT_EQ(prepared->startReport().shapes, 3u);
}

TEST_F(DynamicModelTest, ASecondStartIsWarm) {
  const std::vector<float> right = run(*prepare(options(), one_), 1);
  settle();
  const auto again = prepare(options(), one_);
  const hal::StartReport report = again->startReport();
  EXPECT_EQ(report.state, State::kWarm) << report.reason;
  EXPECT_EQ(packedBytes(report), 0u);
  EXPECT_EQ(run(*again, 1), right);
  EXPECT_EQ(run(*again, 6), expected(6));
}

TEST_F(DynamicModelTest, TheFirstExecutionNamesTheShapesWhereNobodyExpectsAny) {
  {
    const auto prepared = prepare(options(), {});
    EXPECT_EQ(prepared->startReport().shapes, 0u);
    EXPECT_EQ(run(*prepared, 2), expected(2));
    EXPECT_EQ(prepared->startReport().state, State::kCold);
  }
  settle();
  const auto again = prepare(options(), {});
  EXPECT_EQ(run(*again, 2), expected(2));
  EXPECT_EQ(again->startReport().state, State::kWarm) << again->startReport().reason;
}

// Converters write 1 for each dimension that they do not know, which some models cannot take.
TEST_F(DynamicModelTest, ExpectedShapesThatTheModelCannotTakeDoNoHarm) {
  const auto prepared = prepare(options(), {{1, 1, 1, kChannels}});
  EXPECT_EQ(prepared->startReport().shapes, 0u);
  EXPECT_EQ(run(*prepared, 2), expected(2));
  EXPECT_EQ(prepared->startReport().shapes, 1u);
  EXPECT_EQ(prepared->startReport().state, State::kCold);
}

TEST_F(DynamicModelTest, OnlyTheLastShapesAreKept) {
  const auto prepared = prepare(off(), one_);
  std::vector<float> first;
  for (uint32_t batch = 1; batch <= 12; ++batch) {
    std::vector<float> output = run(*prepared, batch);
    if (batch == 1) first = std::move(output);
  }
  EXPECT_EQ(prepared->startReport().shapes, 8u);
  EXPECT_EQ(run(*prepared, 1), first);
  EXPECT_EQ(run(*prepared, 2), expected(2));
  EXPECT_EQ(prepared->startReport().shapes, 8u);
}

TEST_F(DynamicModelTest, ThreadsMeetNewShapesAtOnce) {
  const auto prepared = prepare(off(), {});
  std::vector<std::vector<float>> right;
  for (uint32_t batch = 1; batch <= 4; ++batch) right.push_back(expected(batch));
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (uint32_t i = 0; i < 8; ++i) {
        const uint32_t batch = (thread + i) % 4;
        EXPECT_EQ(run(*prepared, batch + 1), right[batch]);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

// What follows from shapes is a constant of each plan, and plans share packed constants.
class ShapeValuesTest : public DynamicModelTest {
 protected:
  using ModelBuilder = hal::cts::ModelBuilder;
  using Values = std::vector<float>;

  // The shape of x as float32, for x with any number of rows.
  static uint32_t addShape(ModelBuilder* builder, uint32_t x) {
    const uint32_t shape = builder->temporary(OperandType::kTensorInt32, {kColumns});
    const uint32_t numbers = builder->temporary(kFloat, {kColumns});
    builder->operation(OperationType::kShape, {x}, {shape});
    builder->operation(OperationType::kCast, {shape}, {numbers});
    return numbers;
  }

  std::shared_ptr<hal::PreparedModel> prepareModel(const graph::Model& model) {
    hal::PrepareOptions options;
    options.driverOptions = off().toTexts();
    auto prepared =
        device_->prepareModel(std::make_shared<graph::Model>(model), options, hal::Cache());
    EXPECT_TRUE(prepared) << prepared.error().toString();
    return prepared ? *prepared : nullptr;
  }

  static Values rows(uint32_t count) {
    Values input;
    for (uint32_t row = 0; row < count; ++row)
      input.insert(input.end(), {static_cast<float>(row) + 3, static_cast<float>(row) - 2});
    return input;
  }

  // The output of `columns` columns.
  static Values run(hal::PreparedModel& prepared, Values input, uint32_t columns) {
    const auto count = static_cast<uint32_t>(input.size() / kColumns);
    Values output(count * columns);
    hal::Request request;
    request.inputs.resize(1);
    request.outputs.resize(1);
    const auto set = [](hal::Argument* argument, Values* values) {
      argument->kind = hal::Argument::Kind::kPointer;
      argument->pointer = values->data();
      argument->length = values->size() * sizeof(float);
    };
    set(&request.inputs[0], &input);
    request.inputs[0].dimensions = {count, kColumns};
    set(&request.outputs[0], &output);
    auto execution = prepared.createExecution(std::move(request));
    EXPECT_TRUE(execution) << execution.error().toString();
    if (!execution) return {};
    const hal::ExecutionResult result = (*execution)->compute({});
    EXPECT_TRUE(result.status) << result.status.error().toString();
    return output;
  }

  static constexpr auto kFloat = OperandType::kTensorFloat32;
  static constexpr uint32_t kColumns = 2;
};

TEST_F(ShapeValuesTest, AConstantIsThatOfTheShape) {
  ModelBuilder builder;
  const uint32_t x = builder.input(kFloat, {0, kColumns});
  const uint32_t sum = builder.temporary(kFloat, {0, kColumns});
  builder.operation(OperationType::kAdd, {x, addShape(&builder, x), builder.scalar(0)}, {sum});
  // The last constant, behind which nothing can be read: it is copied or packed.
  const uint32_t last = builder.temporary(OperandType::kTensorInt32, {kColumns});
  builder.operation(OperationType::kShape, {x}, {last});
  builder.operation(OperationType::kReshape, {sum, last}, {builder.output(kFloat, {0, kColumns})});
  const auto prepared = prepareModel(builder.model());
  for (const uint32_t count : {1u, 4u, 8u, 3u, 1u}) {
    Values sums = rows(count);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<float>(i % 2 == 0 ? count : 2);
    EXPECT_EQ(run(*prepared, rows(count), kColumns), sums) << count;
  }
  EXPECT_EQ(prepared->startReport().shapes, 4u);
}

TEST_F(ShapeValuesTest, AFilterIsThatOfTheShape) {
  ModelBuilder builder;
  const uint32_t x = builder.input(kFloat, {0, kColumns});
  const uint32_t filter = builder.temporary(kFloat, {1, kColumns});
  const uint32_t list = builder.constant<int32_t>(OperandType::kTensorInt32, {2}, {1, kColumns});
  builder.operation(OperationType::kReshape, {addShape(&builder, x), list}, {filter});
  builder.operation(OperationType::kFullyConnected,
                    {x, filter, builder.constant<float>(kFloat, {1}, {0.5f}), builder.scalar(0)},
                    {builder.output(kFloat, {0, 1})});
  const auto prepared = prepareModel(builder.model());
  for (const uint32_t count : {1u, 4u, 8u, 3u, 1u}) {
    const Values input = rows(count);
    Values products;
    for (size_t i = 0; i < input.size(); i += 2)
      products.push_back(input[i] * static_cast<float>(count) + input[i + 1] * 2 + 0.5f);
    EXPECT_EQ(run(*prepared, input, 1), products) << count;
  }
  EXPECT_EQ(prepared->startReport().shapes, 4u);
}

TEST_F(DynamicModelTest, AnInputWithoutElementsIsInterpreted) {
  const auto prepared = prepare(off(), one_);
  float nothing = 0;
  hal::Request request;
  request.inputs.resize(1);
  request.inputs[0].kind = hal::Argument::Kind::kPointer;
  request.inputs[0].pointer = &nothing;
  request.inputs[0].dimensions = {0, kSide, kSide, kChannels};
  request.outputs.resize(1);
  auto execution = prepared->createExecution(std::move(request));
  // Whether operations take no pictures is theirs to say; nothing may crash.
  if (execution) static_cast<void>((*execution)->compute({}));
  EXPECT_EQ(prepared->startReport().shapes, 1u);
}

}  // namespace
}  // namespace hearth::cpu
