// SPDX-License-Identifier: Apache-2.0
// Models with shapes that depend on values: results, packed weights, and what is kept.
#include "drivers/cpu/cut_model.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "drivers/cpu/testing/weight_session_test_util.h"

namespace hearth::cpu {
namespace {

constexpr uint32_t kPictures = 8;
constexpr uint32_t kRow = kSide * kSide * kFilters;

class CutModelTest : public WeightSessionTest {
 protected:
  // The test model for eight pictures, whose last layer reads as many as a second input says:
  // SLICE, whose begins are constant.
  static TestModel withSlice(uint32_t seed) {
    TestModel test(seed, kPictures);
    graph::Subgraph& main = test.model.main();
    const auto list = [&](Lifetime lifetime) {
      graph::Operand operand;
      operand.type = OperandType::kTensorInt32;
      operand.dimensions = {2};
      operand.lifetime = lifetime;
      main.operands.push_back(operand);
      return static_cast<uint32_t>(main.operands.size() - 1);
    };
    const uint32_t sizes = list(Lifetime::kSubgraphInput);
    const uint32_t begins = list(Lifetime::kConstantCopy);
    test.model.constantBytes.resize((test.model.constantBytes.size() + 3) / 4 * 4 + 8);
    main.operands[begins].location = {0, test.model.constantBytes.size() - 8, 8};
    const uint32_t flat = main.operations[3].inputs[0];
    const auto some = static_cast<uint32_t>(main.operands.size());
    main.operands.push_back(main.operands[flat]);
    main.operands[some].dimensions = {0, kRow};
    main.operands[main.outputs[0]].dimensions = {0, kClasses};
    main.operations[3].inputs[0] = some;
    main.inputs.push_back(sizes);
    graph::Operation slice;
    slice.type = OperationType::kSlice;
    slice.inputs = {flat, begins, sizes};
    slice.outputs = {some};
    main.operations.insert(main.operations.begin() + 3, std::move(slice));
    return test;
  }

  std::vector<float> expected(uint32_t count) {
    const TestModel fixed(kSeed, count);
    save(fixed, "fixed.bin");
    return start(fixed, off(), "fixed.bin").output;
  }

  std::shared_ptr<hal::PreparedModel> prepare(const cache::StoreOptions& store) {
    save(test_);
    return prepareOnly(test_, store).prepared;
  }

  // The model over its saved file.
  std::shared_ptr<const graph::Model> saved(const TestModel& test) const {
    save(test);
    auto pool = memory::Pool::openFile(folder_.path() / "model.bin");
    EXPECT_TRUE(pool) << pool.error().toString();
    auto model = std::make_shared<graph::Model>(test.model);
    model->pools = {*pool};
    return model;
  }

  // The arguments of one execution.
  struct Arguments {
    std::vector<float> pictures = WeightSessionTest::pictures(kPictures);
    int32_t sizes[2] = {1, static_cast<int32_t>(kRow)};
    std::vector<float> output = std::vector<float>(kPictures * kClasses);

    hal::Request request() {
      hal::Request request;
      request.inputs = {argument(pictures.data(), pictures.size() * sizeof(float)),
                        argument(sizes, sizeof sizes)};
      request.outputs = {argument(output.data(), output.size() * sizeof(float))};
      return request;
    }
    std::vector<float> rows(uint32_t count) const {
      return {output.begin(), output.begin() + count * kClasses};
    }

   private:
    static hal::Argument argument(void* data, size_t length) {
      hal::Argument argument;
      argument.kind = hal::Argument::Kind::kPointer;
      argument.pointer = data;
      argument.length = length;
      return argument;
    }
  };

  static std::vector<float> run(hal::PreparedModel& prepared, uint32_t count) {
    Arguments arguments;
    arguments.sizes[0] = static_cast<int32_t>(count);
    auto execution = prepared.createExecution(arguments.request());
    EXPECT_TRUE(execution) << execution.error().toString();
    if (!execution) return {};
    const hal::ExecutionResult result = (*execution)->compute({});
    EXPECT_TRUE(result.status) << result.status.error().toString();
    if (!result.status) return {};
    EXPECT_EQ(result.outputShapes[0].dimensions, graph::Dimensions({count, kClasses}));
    return arguments.rows(count);
  }

  static uint64_t packedBytes(const hal::StartReport& report) {
    uint64_t bytes = 0;
    for (const auto& [kind, count] : report.packedBytes) bytes += count;
    return bytes;
  }

  static constexpr uint32_t kSeed = 7;
  const TestModel test_ = withSlice(kSeed);
};

TEST_F(CutModelTest, GivesTheResultsOfTheFixedModelForEachShape) {
  const auto prepared = prepare(off());
  for (const uint32_t count : {1u, 4u, 8u, 3u, 1u, 4u})
    EXPECT_EQ(run(*prepared, count), expected(count)) << count;
  EXPECT_EQ(prepared->startReport().shapes, 4u);
}

TEST_F(CutModelTest, AnExecutionMayComputeOtherShapesAgain) {
  const auto prepared = prepare(off());
  Arguments arguments;
  const auto execution = prepared->createExecution(arguments.request());
  ASSERT_TRUE(execution) << execution.error().toString();
  for (const uint32_t count : {2u, 2u, 7u, 1u, 2u}) {
    arguments.sizes[0] = static_cast<int32_t>(count);
    const hal::ExecutionResult result = (*execution)->compute({});
    ASSERT_TRUE(result.status) << result.status.error().toString();
    EXPECT_EQ(result.outputShapes[0].dimensions, graph::Dimensions({count, kClasses}));
    EXPECT_EQ(arguments.rows(count), expected(count)) << count;
  }
}

TEST_F(CutModelTest, WhatComesBeforeIsPackedAtOnceAndTheRestWithTheFirstExecution) {
  const auto prepared = prepare(options());
  const hal::StartReport before = prepared->startReport();
  EXPECT_EQ(before.state, State::kCold) << before.reason;
  EXPECT_GT(packedBytes(before), 1'000'000u);
  EXPECT_EQ(before.shapes, 0u);
  run(*prepared, 5);
  const hal::StartReport after = prepared->startReport();
  EXPECT_EQ(after.state, State::kCold) << after.reason;
  EXPECT_GT(packedBytes(after), packedBytes(before) + 2'000'000u);
  const uint64_t packed = PackedWeights::packedByThisThread();
  run(*prepared, 2);
  EXPECT_EQ(PackedWeights::packedByThisThread(), packed);
  EXPECT_EQ(prepared->startReport().shapes, 2u);
}

TEST_F(CutModelTest, ASecondStartIsWarm) {
  const std::vector<float> right = run(*prepare(options()), 3);
  settle();
  const auto again = prepare(options());
  EXPECT_EQ(run(*again, 3), right);
  const hal::StartReport report = again->startReport();
  EXPECT_EQ(report.state, State::kWarm) << report.reason;
  EXPECT_EQ(packedBytes(report), 0u);
  EXPECT_EQ(run(*again, 6), expected(6));
}

TEST_F(CutModelTest, ABundleHoldsAllParts) {
  cache::StoreOptions bundle = options();
  bundle.bundle = (folder_.path() / "bundle").string();
  std::vector<float> right;
  {
    const auto prepared = prepare(bundle);
    right = run(*prepared, 3);
    device_->flush();
  }
  for (int i = 0; i < 2; ++i) {
    const auto again = prepare(bundle);
    EXPECT_EQ(run(*again, 3), right);
    const hal::StartReport report = again->startReport();
    EXPECT_EQ(report.state, State::kWarm) << report.reason;
    EXPECT_EQ(packedBytes(report), 0u);
    device_->flush();
  }
}

TEST_F(CutModelTest, TheStartOfWhatIsPreparedAtOnceIsExplained) {
  hal::PrepareOptions prepare;
  prepare.threads = 2;
  prepare.driverOptions = options().toTexts();
  const auto before = device_->explainStart(saved(test_), prepare);
  ASSERT_TRUE(before) << before.error().toString();
  EXPECT_EQ(before->state, State::kCold) << before->reason;
  run(*this->prepare(options()), 3);
  settle();
  const auto after = device_->explainStart(saved(test_), prepare);
  ASSERT_TRUE(after) << after.error().toString();
  EXPECT_EQ(after->state, State::kWarm) << after->reason;
}

TEST_F(CutModelTest, KernelsOfAllPartsAreExplained) {
  const auto support = device_->explainOperations(*saved(test_));
  ASSERT_TRUE(support) << support.error().toString();
  ASSERT_EQ(support->size(), 5u);
  for (size_t i = 0; i < support->size(); ++i) {
    const std::string& kernel = (*support)[i].kernel;
    if (i == 3)  // SLICE, where the model is divided
      EXPECT_EQ(kernel, "reference");
    else
      EXPECT_TRUE(kernel == "xnnpack" || kernel == "own" || kernel == "none") << i << kernel;
  }
}

TEST_F(CutModelTest, AnOutputThatIsTooSmallTellsItsShape) {
  const auto prepared = prepare(off());
  Arguments arguments;
  arguments.sizes[0] = 6;
  arguments.output.resize(2 * kClasses);
  const auto execution = prepared->createExecution(arguments.request());
  ASSERT_TRUE(execution) << execution.error().toString();
  const hal::ExecutionResult result = (*execution)->compute({});
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code(), ErrorCode::kOutputInsufficientSize);
  EXPECT_EQ(result.outputShapes[0].dimensions, graph::Dimensions({6, kClasses}));
  EXPECT_FALSE(result.outputShapes[0].isSufficient);
}

TEST_F(CutModelTest, AResultWithoutElementsIsInterpretedFromThere) {
  const auto prepared = prepare(off());
  Arguments arguments;
  arguments.sizes[0] = 0;
  const auto execution = prepared->createExecution(arguments.request());
  ASSERT_TRUE(execution) << execution.error().toString();
  // Whether operations take no pictures is theirs to say.
  static_cast<void>((*execution)->compute({}));
  EXPECT_EQ(run(*prepared, 1), expected(1));
}

TEST_F(CutModelTest, WrongValuesFailAsTheInterpreterSays) {
  const auto prepared = prepare(off());
  Arguments arguments;
  arguments.sizes[0] = kPictures + 1;
  const auto execution = prepared->createExecution(arguments.request());
  ASSERT_TRUE(execution) << execution.error().toString();
  const hal::ExecutionResult result = (*execution)->compute({});
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code(), ErrorCode::kBadData);
}

TEST_F(CutModelTest, OutputsMayOverwriteInputs) {
  const auto prepared = prepare(off());
  Arguments arguments;
  arguments.sizes[0] = 2;
  hal::Request request = arguments.request();
  request.outputs[0].pointer = arguments.pictures.data();
  const auto execution = prepared->createExecution(std::move(request));
  ASSERT_TRUE(execution) << execution.error().toString();
  const hal::ExecutionResult result = (*execution)->compute({});
  ASSERT_TRUE(result.status) << result.status.error().toString();
  const std::vector<float> made(arguments.pictures.begin(),
                                arguments.pictures.begin() + 2 * kClasses);
  EXPECT_EQ(made, expected(2));
}

TEST_F(CutModelTest, ThreadsMeetNewShapesAtOnce) {
  const auto prepared = prepare(off());
  std::vector<std::vector<float>> right;
  for (uint32_t count = 1; count <= 4; ++count) right.push_back(expected(count));
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t count = (thread + i) % 4;
        EXPECT_EQ(run(*prepared, count + 1), right[count]);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

// The SLICE reads an input, and nothing comes before it, so that a computation takes little.
class CutAtTheInputTest : public CutModelTest {
 protected:
  static constexpr uint32_t kWidth = 64;
  static constexpr uint32_t kMost = 200;

  static std::shared_ptr<graph::Model> model() {
    auto model = std::make_shared<graph::Model>();
    graph::Subgraph main;
    const auto add = [&](OperandType type, graph::Dimensions dimensions, Lifetime lifetime) {
      graph::Operand operand;
      operand.type = type;
      operand.dimensions = std::move(dimensions);
      operand.lifetime = lifetime;
      main.operands.push_back(operand);
      return static_cast<uint32_t>(main.operands.size() - 1);
    };
    const auto constant = [&](OperandType type, graph::Dimensions dimensions, size_t bytes) {
      const uint32_t index = add(type, std::move(dimensions), Lifetime::kConstantCopy);
      main.operands[index].location = {0, model->constantBytes.size(), bytes};
      model->constantBytes.resize(model->constantBytes.size() + (bytes + 7) / 8 * 8);
      return index;
    };
    const uint32_t all =
        add(OperandType::kTensorFloat32, {kMost, kWidth}, Lifetime::kSubgraphInput);
    const uint32_t sizes = add(OperandType::kTensorInt32, {2}, Lifetime::kSubgraphInput);
    const uint32_t some = add(OperandType::kTensorFloat32, {0, kWidth}, Lifetime::kTemporary);
    const uint32_t made = add(OperandType::kTensorFloat32, {0, kWidth}, Lifetime::kSubgraphOutput);
    const uint32_t begins = constant(OperandType::kTensorInt32, {2}, 8);
    const uint32_t matrix =
        constant(OperandType::kTensorFloat32, {kWidth, kWidth}, kWidth * kWidth * sizeof(float));
    const uint32_t bias = constant(OperandType::kTensorFloat32, {kWidth}, kWidth * sizeof(float));
    const uint32_t none = constant(OperandType::kInt32, {}, 4);
    for (uint32_t i = 0; i < kWidth; ++i) {
      const float one = 1.0f;
      std::memcpy(model->constantBytes.data() + main.operands[matrix].location.offset +
                      i * (kWidth + 1) * sizeof one,
                  &one, sizeof one);
    }
    main.inputs = {all, sizes};
    main.outputs = {made};
    main.operations = {{OperationType::kSlice, {all, begins, sizes}, {some}, ""},
                       {OperationType::kFullyConnected, {some, matrix, bias, none}, {made}, ""}};
    model->subgraphs.push_back(std::move(main));
    return model;
  }
};

TEST_F(CutAtTheInputTest, AThousandLengthsNeedNoMoreMemory) {
  hal::PrepareOptions options;
  options.threads = 1;
  options.driverOptions = off().toTexts();
  const auto prepared = device_->prepareModel(model(), options, hal::Cache());
  ASSERT_TRUE(prepared) << prepared.error().toString();
  std::vector<float> input(kMost * kWidth);
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i % 251);
  std::vector<float> output(input.size());
  int32_t sizes[2] = {0, kWidth};
  size_t before = 0;
  for (uint32_t round = 0; round < 1000; ++round) {
    const uint32_t count = 1 + round * 37 % kMost;
    sizes[0] = static_cast<int32_t>(count);
    hal::Request request;
    request.inputs.resize(2);
    request.outputs.resize(1);
    const auto set = [](hal::Argument* argument, void* data, size_t bytes) {
      argument->kind = hal::Argument::Kind::kPointer;
      argument->pointer = data;
      argument->length = bytes;
    };
    set(&request.inputs[0], input.data(), input.size() * sizeof(float));
    set(&request.inputs[1], sizes, sizeof sizes);
    set(&request.outputs[0], output.data(), output.size() * sizeof(float));
    std::ranges::fill(output, -1.0f);
    const auto execution = (*prepared)->createExecution(std::move(request));
    ASSERT_TRUE(execution) << execution.error().toString();
    const hal::ExecutionResult result = (*execution)->compute({});
    ASSERT_TRUE(result.status) << result.status.error().toString();
    const size_t elements = size_t{count} * kWidth;
    ASSERT_TRUE(std::equal(output.begin(), output.begin() + static_cast<ptrdiff_t>(elements),
                           input.begin()));
    ASSERT_TRUE(elements == output.size() || output[elements] == -1.0f);
    if (round == 200) before = ::mallinfo2().uordblks;
  }
  EXPECT_EQ((*prepared)->startReport().shapes, 8u);
  EXPECT_LE(::mallinfo2().uordblks, before + (size_t{256} << 10));
}

// Three SLICE with a layer behind each, so that the model is divided three times.
class ChainOfCutsTest : public CutAtTheInputTest {
 protected:
  static constexpr uint32_t kLinks = 3;

  static std::shared_ptr<graph::Model> chain() {
    const std::shared_ptr<graph::Model> made = model();
    graph::Subgraph& main = made->main();
    const graph::Operation slice = main.operations[0];
    const graph::Operation layer = main.operations[1];
    for (uint32_t link = 1; link < kLinks; ++link) {
      main.operands[main.operations.back().outputs[0]].lifetime = Lifetime::kTemporary;
      graph::Operation next = slice;
      next.inputs[0] = main.operations.back().outputs[0];
      main.operands.push_back(main.operands[slice.inputs[2]]);
      next.inputs[2] = static_cast<uint32_t>(main.operands.size() - 1);
      main.inputs.push_back(next.inputs[2]);
      main.operands.push_back(main.operands[slice.outputs[0]]);
      next.outputs[0] = static_cast<uint32_t>(main.operands.size() - 1);
      graph::Operation behind = layer;
      behind.inputs[0] = next.outputs[0];
      main.operands.push_back(main.operands[layer.outputs[0]]);
      behind.outputs[0] = static_cast<uint32_t>(main.operands.size() - 1);
      main.operands[behind.outputs[0]].lifetime = Lifetime::kSubgraphOutput;
      main.operations.push_back(std::move(next));
      main.operations.push_back(std::move(behind));
      main.outputs = main.operations.back().outputs;
    }
    return made;
  }
};

TEST_F(ChainOfCutsTest, ManyLengthsOfEachLinkNeedNoMoreMemory) {
  hal::PrepareOptions options;
  options.threads = 1;
  options.driverOptions = off().toTexts();
  const auto prepared = device_->prepareModel(chain(), options, hal::Cache());
  ASSERT_TRUE(prepared) << prepared.error().toString();
  std::vector<float> input(kMost * kWidth);
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i % 251);
  std::vector<float> output(input.size());
  size_t before = 0;
  for (uint32_t round = 0; round < 1000; ++round) {
    // Eight lengths of each link, in all combinations.
    int32_t sizes[kLinks][2];
    for (uint32_t link = 0; link < kLinks; ++link) {
      sizes[link][0] = static_cast<int32_t>(100 - 20 * link - (round >> (3 * link)) % 8);
      sizes[link][1] = kWidth;
    }
    hal::Request request;
    const auto set = [](void* data, size_t bytes) {
      hal::Argument argument;
      argument.kind = hal::Argument::Kind::kPointer;
      argument.pointer = data;
      argument.length = bytes;
      return argument;
    };
    request.inputs = {set(input.data(), input.size() * sizeof(float))};
    for (auto& link : sizes) request.inputs.push_back(set(link, sizeof link));
    request.outputs = {set(output.data(), output.size() * sizeof(float))};
    const auto execution = (*prepared)->createExecution(std::move(request));
    ASSERT_TRUE(execution) << execution.error().toString();
    const hal::ExecutionResult result = (*execution)->compute({});
    ASSERT_TRUE(result.status) << result.status.error().toString();
    const auto rows = static_cast<uint32_t>(sizes[kLinks - 1][0]);
    ASSERT_EQ(result.outputShapes[0].dimensions, graph::Dimensions({rows, kWidth}));
    ASSERT_TRUE(std::equal(output.begin(), output.begin() + size_t{rows} * kWidth, input.begin()));
    if (round == 100) before = ::mallinfo2().uordblks;
  }
  EXPECT_LE(::mallinfo2().uordblks, before + (size_t{512} << 10));
}

}  // namespace
}  // namespace hearth::cpu
