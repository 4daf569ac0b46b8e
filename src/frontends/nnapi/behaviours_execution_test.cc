// SPDX-License-Identifier: Apache-2.0
// Behaviours 23 to 33 and 42 of NNAPI: arguments and results of executions.
#include <atomic>
#include <thread>

#include "frontends/nnapi/testing/fake_device_test.h"

namespace hearth::nnapi {
namespace {

using ndk::Out;

class ExecutionBehaviour : public FakeDeviceTest {
 protected:
  static int setInput(const ndk::Execution& execution, int32_t index,
                      const std::vector<float>& values) {
    return ANeuralNetworksExecution_setInput(execution.get(), index, nullptr, values.data(),
                                             values.size() * sizeof(float));
  }
  static int setOutput(const ndk::Execution& execution, int32_t index, std::vector<float>& values) {
    return ANeuralNetworksExecution_setOutput(execution.get(), index, nullptr, values.data(),
                                              values.size() * sizeof(float));
  }

  const std::vector<float> a_ = {1, 2};
  const std::vector<float> b_ = {10, 20};
  std::vector<float> sum_ = {0, 0};
};

TEST_F(ExecutionBehaviour, B23_MissingArgumentsLeaveTheExecutionOpen) {
  const ndk::Compilation compilation = compileForAll(addModel());
  ndk::BurstHandle burst;
  ASSERT_CODE(NO_ERROR, ANeuralNetworksBurst_create(compilation.get(), Out(burst)));
  ndk::Execution execution(compilation);
  ndk::EventHandle event;
  const auto allAreRefused = [&] {
    EXPECT_CODE(BAD_DATA, ANeuralNetworksExecution_compute(execution.get()));
    EXPECT_CODE(BAD_DATA, ANeuralNetworksExecution_startCompute(execution.get(), Out(event)));
    EXPECT_EQ(event, nullptr);
    EXPECT_CODE(BAD_DATA, ANeuralNetworksExecution_burstCompute(execution.get(), burst.get()));
    EXPECT_CODE(BAD_DATA, ANeuralNetworksExecution_startComputeWithDependencies(
                              execution.get(), nullptr, 0, 0, Out(event)));
  };
  allAreRefused();
  execution.input(0, a_);
  allAreRefused();
  execution.output(0, sum_);
  allAreRefused();
  execution.input(1, b_);
  execution.compute();
  EXPECT_THAT(sum_, testing::ElementsAre(11, 22));
}

TEST_F(ExecutionBehaviour, B24_ComputesOnceUnlessReusable) {
  const ndk::Compilation compilation = compileForAll(addModel());
  ndk::BurstHandle burst;
  ASSERT_CODE(NO_ERROR, ANeuralNetworksBurst_create(compilation.get(), Out(burst)));
  ndk::Execution once(compilation);
  once.input(0, a_).input(1, b_).output(0, sum_).compute();
  ndk::EventHandle event;
  EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_compute(once.get()));
  EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_startCompute(once.get(), Out(event)));
  EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_burstCompute(once.get(), burst.get()));
  EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_startComputeWithDependencies(once.get(), nullptr,
                                                                               0, 0, Out(event)));
  EXPECT_CODE(BAD_STATE, setInput(once, 0, a_));
  EXPECT_CODE(BAD_STATE, setOutput(once, 0, sum_));
  EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_setReusable(once.get(), true));
  EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_setLoopTimeout(once.get(), 1));
  EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_enableInputAndOutputPadding(once.get(), true));

  ndk::Execution again(compilation);
  again.reusable().input(0, a_).input(1, b_).output(0, sum_);
  for (int i = 0; i < 3; ++i) {
    sum_ = {0, 0};
    again.compute();
    EXPECT_THAT(sum_, testing::ElementsAre(11, 22));
    sum_ = {0, 0};
    again.start().wait();
    EXPECT_THAT(sum_, testing::ElementsAre(11, 22));
    sum_ = {0, 0};
    again.startAfter({}).wait();
    EXPECT_THAT(sum_, testing::ElementsAre(11, 22));
    sum_ = {0, 0};
    EXPECT_CODE(NO_ERROR, ANeuralNetworksExecution_burstCompute(again.get(), burst.get()));
    EXPECT_THAT(sum_, testing::ElementsAre(11, 22));
  }
  const std::vector<float> other = {5, 5};
  again.input(0, other).compute();
  EXPECT_THAT(sum_, testing::ElementsAre(15, 25));
}

TEST_F(ExecutionBehaviour, B25_ArgumentsAreSetOnceAndFit) {
  const ndk::Compilation compilation = compileForAll(addModel());
  ndk::Execution execution(compilation);
  std::vector<float> tooShort = {0};
  std::vector<float> tooLong = {0, 0, 0};
  for (const int32_t index : {-1, 2, 1000}) EXPECT_CODE(BAD_DATA, setInput(execution, index, a_));
  for (const int32_t index : {-1, 1}) EXPECT_CODE(BAD_DATA, setOutput(execution, index, sum_));
  EXPECT_CODE(BAD_DATA, setInput(execution, 0, tooShort));
  EXPECT_CODE(BAD_DATA, setInput(execution, 0, tooLong));
  EXPECT_CODE(BAD_DATA, setOutput(execution, 0, tooShort));
  EXPECT_CODE(BAD_DATA, setOutput(execution, 0, tooLong));
  EXPECT_CODE(NO_ERROR, setInput(execution, 0, a_));
  EXPECT_CODE(BAD_STATE, setInput(execution, 0, a_));
  EXPECT_CODE(NO_ERROR, setOutput(execution, 0, sum_));
  EXPECT_CODE(BAD_STATE, setOutput(execution, 0, sum_));

  ndk::Execution reusable(compilation);
  reusable.reusable();
  EXPECT_CODE(NO_ERROR, setInput(reusable, 0, a_));
  EXPECT_CODE(NO_ERROR, setInput(reusable, 0, b_));
}

// The code of setting an argument of this type for an operand of these dimensions.
int setTyped(const std::vector<uint32_t>& modelDimensions, const ndk::Type& type, bool isInput,
             size_t floatCount) {
  const ndk::Model model = addModel(modelDimensions);
  ndk::Compilation compilation(model);
  compilation.finish();
  ndk::Execution execution(compilation);
  std::vector<float> values(floatCount);
  const ANeuralNetworksOperandType given = type.get();
  if (isInput)
    return ANeuralNetworksExecution_setInput(execution.get(), 0, &given, values.data(),
                                             floatCount * sizeof(float));
  return ANeuralNetworksExecution_setOutput(execution.get(), 0, &given, values.data(),
                                            floatCount * sizeof(float));
}

TEST_F(ExecutionBehaviour, B26_TypeArgumentsFillDimensionsIn) {
  for (const bool isInput : {true, false}) {
    SCOPED_TRACE(isInput);
    EXPECT_CODE(NO_ERROR, setTyped({2, 3}, floats({2, 3}), isInput, 6));
    EXPECT_CODE(NO_ERROR, setTyped({0, 3}, floats({2, 3}), isInput, 6));
    EXPECT_CODE(NO_ERROR, setTyped({0, 0}, floats({2, 3}), isInput, 6));
    EXPECT_CODE(NO_ERROR, setTyped({}, floats({2, 3}), isInput, 6));
    EXPECT_CODE(BAD_DATA, setTyped({2, 3}, floats({3, 2}), isInput, 6));
    EXPECT_CODE(BAD_DATA, setTyped({2, 3}, floats({6}), isInput, 6));
    EXPECT_CODE(BAD_DATA, setTyped({0, 3}, floats({2, 4}), isInput, 8));
    EXPECT_CODE(BAD_DATA, setTyped({0, 3}, floats({2, 3}), isInput, 5));
    // Less specific than the model.
    EXPECT_CODE(BAD_DATA, setTyped({2, 3}, floats({0, 3}), isInput, 6));
    EXPECT_CODE(BAD_DATA, setTyped({2, 3}, floats({}), isInput, 6));
  }
  // Only outputs may have unknown dimensions.
  EXPECT_CODE(BAD_DATA, setTyped({0, 3}, floats({0, 3}), true, 6));
  EXPECT_CODE(BAD_DATA, setTyped({}, floats({}), true, 6));
  EXPECT_CODE(NO_ERROR, setTyped({0, 3}, floats({0, 3}), false, 6));
  EXPECT_CODE(NO_ERROR, setTyped({}, floats({}), false, 6));
  const ndk::Compilation compilation = compileForAll(addModel({0}));
  ndk::Execution execution(compilation);
  EXPECT_CODE(BAD_DATA, setInput(execution, 0, a_));
  // An omitted input needs no dimensions.
  EXPECT_CODE(NO_ERROR, ANeuralNetworksExecution_setInput(execution.get(), 0, nullptr, nullptr, 0));
}

// An execution of addModel({0}) with inputs of two floats and an output of `size` bytes.
ndk::Execution dynamicExecution(const ndk::Compilation& compilation, const std::vector<float>& a,
                                void* output, size_t size) {
  ndk::Execution execution(compilation);
  const ndk::Type type = floats({2});
  const ANeuralNetworksOperandType two = type.get();
  for (const int32_t index : {0, 1})
    ndk::check(ANeuralNetworksExecution_setInput(execution.get(), index, &two, a.data(), 8),
               "setInput");
  ndk::check(ANeuralNetworksExecution_setOutput(execution.get(), 0, nullptr, output, size),
             "setOutput");
  return execution;
}

TEST_F(ExecutionBehaviour, B27_TooSmallOutputsTellTheirShape) {
  for (ANeuralNetworksDevice* device : ndk::devices()) {
    SCOPED_TRACE(ndk::nameOf(device));
    const ndk::Model model = addModel({0});
    ndk::Compilation compilation(model, {device});
    compilation.finish();
    float tooSmall = 77;
    const ndk::Execution execution = dynamicExecution(compilation, a_, &tooSmall, 4);
    EXPECT_CODE(OUTPUT_INSUFFICIENT_SIZE, ANeuralNetworksExecution_compute(execution.get()));
    uint32_t rank = 0;
    uint32_t dimension = 0;
    EXPECT_CODE(OUTPUT_INSUFFICIENT_SIZE,
                ANeuralNetworksExecution_getOutputOperandRank(execution.get(), 0, &rank));
    EXPECT_EQ(rank, 1u);
    EXPECT_CODE(OUTPUT_INSUFFICIENT_SIZE, ANeuralNetworksExecution_getOutputOperandDimensions(
                                              execution.get(), 0, &dimension));
    EXPECT_EQ(dimension, 2u);
    EXPECT_EQ(tooSmall, 77);
  }
}

TEST_F(ExecutionBehaviour, B28_LargerOutputsThanNeeded) {
  const ndk::Compilation compilation = compileForAll(addModel({0}));
  std::vector<float> large(5, -1);
  const ndk::Execution execution = dynamicExecution(compilation, a_, large.data(), 20);
  ASSERT_CODE(NO_ERROR, ANeuralNetworksExecution_compute(execution.get()));
  EXPECT_THAT(large, testing::ElementsAre(2, 4, -1, -1, -1));
  EXPECT_THAT(execution.outputDimensions(0), testing::ElementsAre(2));
  // A known size must be met exactly.
  const ndk::Compilation known = compileForAll(addModel());
  ndk::Execution exact(known);
  EXPECT_CODE(BAD_DATA, setOutput(exact, 0, large));
}

TEST_F(ExecutionBehaviour, B29_ShapesOfOutputsBeforeAndAfter) {
  const ndk::Compilation compilation = compileForAll(addModel());
  ndk::Execution execution(compilation);
  uint32_t answer[4] = {};
  const auto rank = [&](int32_t index) {
    return ANeuralNetworksExecution_getOutputOperandRank(execution.get(), index, answer);
  };
  const auto dimensions = [&](int32_t index) {
    return ANeuralNetworksExecution_getOutputOperandDimensions(execution.get(), index, answer);
  };
  EXPECT_CODE(BAD_STATE, rank(0));
  EXPECT_CODE(BAD_STATE, dimensions(0));
  execution.input(0, a_).input(1, b_).output(0, sum_).compute();
  EXPECT_CODE(NO_ERROR, rank(0));
  EXPECT_EQ(answer[0], 1u);
  EXPECT_CODE(NO_ERROR, dimensions(0));
  EXPECT_EQ(answer[0], 2u);
  for (const int32_t index : {-1, 1}) {
    EXPECT_CODE(BAD_DATA, rank(index));
    EXPECT_CODE(BAD_DATA, dimensions(index));
  }

  setDevicesForTest({std::make_shared<FakeDevice>(
      FakeDeviceOptions{.name = "fails", .computeError = ErrorCode::kOpFailed})});
  const ndk::Model model = addModel();
  ndk::Compilation failing(model, {ndk::devices()[0]});
  failing.finish();
  ndk::Execution failed(failing);
  failed.input(0, a_).input(1, b_).output(0, sum_);
  EXPECT_CODE(OP_FAILED, ANeuralNetworksExecution_compute(failed.get()));
  EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_getOutputOperandRank(failed.get(), 0, answer));
  EXPECT_CODE(BAD_STATE,
              ANeuralNetworksExecution_getOutputOperandDimensions(failed.get(), 0, answer));
}

TEST_F(ExecutionBehaviour, B30_OutputsMayBeEmpty) {
  // BOX_WITH_NMS_LIMIT with a threshold that no box reaches.
  ndk::Model model;
  const uint32_t scores = model.operand(floats({2, 2}));
  const uint32_t boxes = model.operand(floats({2, 8}));
  const uint32_t batches = model.operand(ints({2}));
  const uint32_t outScores = model.operand(floats({0}));
  const uint32_t outBoxes = model.operand(floats({0, 4}));
  const uint32_t outClasses = model.operand(ints({0}));
  const uint32_t outBatches = model.operand(ints({0}));
  model.operation(ANEURALNETWORKS_BOX_WITH_NMS_LIMIT,
                  {scores, boxes, batches, model.float32(0.9f), model.int32(-1), model.int32(0),
                   model.float32(0.4f), model.float32(1.0f), model.float32(0.3f)},
                  {outScores, outBoxes, outClasses, outBatches});
  model.finish({scores, boxes, batches}, {outScores, outBoxes, outClasses, outBatches});
  const ndk::Compilation compilation = compileForAll(model);
  ndk::Execution execution(compilation);
  const std::vector<float> lowScores(4, 0.1f);
  const std::vector<float> corners = {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 2, 2, 0, 0, 2, 2};
  const std::vector<int32_t> zeros = {0, 0};
  std::vector<float> a(1), b(1);
  std::vector<int32_t> c(1), d(1);
  execution.input(0, lowScores).input(1, corners).input(2, zeros);
  execution.output(0, a).output(1, b).output(2, c).output(3, d).compute();
  EXPECT_THAT(execution.outputDimensions(0), testing::ElementsAre(0));
  EXPECT_THAT(execution.outputDimensions(1), testing::ElementsAre(0, 4));
}

// Sparse LSH_PROJECTION with a weight for each input row; the weights may be omitted.
std::vector<int32_t> project(ANeuralNetworksDevice* device, const std::vector<float>& weights) {
  ndk::Model model;
  const uint32_t hash = model.constant<float>(floats({2, 2}), {0.123f, 0.456f, -0.321f, 1.234f});
  const uint32_t rows = model.operand(ints({3, 2}));
  const uint32_t weight = model.operand(floats({3}));
  const uint32_t output = model.operand(ints({2}));
  model.operation(ANEURALNETWORKS_LSH_PROJECTION, {hash, rows, weight, model.int32(3)}, {output});
  model.finish({rows, weight}, {output});
  const ndk::Compilation compilation = compileWith(model, device);
  const std::vector<int32_t> values = {12345, 54321, 67890, 9876, -12345678, -87654321};
  std::vector<int32_t> result(2, -1);
  ndk::Execution execution(compilation);
  execution.input(0, values).output(0, result);
  ndk::check(ANeuralNetworksExecution_setInput(execution.get(), 1, nullptr,
                                               weights.empty() ? nullptr : weights.data(),
                                               weights.size() * sizeof(float)),
             "setInput");
  execution.compute();
  return result;
}

TEST_F(ExecutionBehaviour, B31_OmittedArguments) {
  for (ANeuralNetworksDevice* device : ndk::devices()) {
    SCOPED_TRACE(ndk::nameOf(device));
    // Without weights all rows weigh the same.
    const std::vector<int32_t> projected = project(device, {});
    EXPECT_EQ(projected, project(device, {1, 1, 1}));
    EXPECT_NE(projected, (std::vector<int32_t>{-1, -1})) << "Nothing was computed.";

    const ndk::Compilation compilation = compileWith(topTwoModel(2), device);
    ndk::Execution execution(compilation);
    const std::vector<float> numbers = {3, 9, 1, 7};
    std::vector<int32_t> largest(2);
    execution.input(0, numbers).output(1, largest);
    EXPECT_CODE(NO_ERROR,
                ANeuralNetworksExecution_setOutput(execution.get(), 0, nullptr, nullptr, 0));
    execution.compute();
    EXPECT_THAT(largest, testing::ElementsAre(1, 3));
  }
}

TEST_F(ExecutionBehaviour, B32_AsyncFailuresShowAtWait) {
  auto device = std::make_shared<FakeDevice>(
      FakeDeviceOptions{.name = "fails", .computeError = ErrorCode::kOpFailed});
  setDevicesForTest({device});
  const ndk::Model model = addModel();
  ndk::Compilation compilation(model, {ndk::devices()[0]});
  compilation.finish();
  ndk::Execution execution(compilation);
  execution.input(0, a_).input(1, b_).output(0, sum_);
  const ndk::Event event = execution.start();
  for (int i = 0; i < 3; ++i) EXPECT_CODE(OP_FAILED, ANeuralNetworksEvent_wait(event.get()));
  device->options.computeError.reset();
  ndk::Execution good(compilation);
  good.input(0, a_).input(1, b_).output(0, sum_);
  // Freeing the event waits.
  good.start();
  EXPECT_THAT(sum_, testing::ElementsAre(11, 22));
}

TEST_F(ExecutionBehaviour, B33_ExecutionsOfOneCompilationAreIndependent) {
  const ndk::Compilation compilation = compileForAll(addThenMulModel({100}));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 10; ++t)
    threads.emplace_back([&, t] {
      const std::vector<float> a(100, static_cast<float>(t));
      const std::vector<float> b(100, 2);
      for (int i = 0; i < 50; ++i) {
        std::vector<float> result(100);
        ndk::Execution(compilation).input(0, a).input(1, b).output(0, result).compute();
        for (const float value : result) wrong += value != static_cast<float>(2 * (t + 2));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(ExecutionBehaviour, B42_FreeingAnExecutionInFlight) {
  const ndk::Compilation compilation = compileForAll(addModel({1000}));
  const std::vector<float> a(1000, 1);
  std::vector<std::vector<float>> sums(100, std::vector<float>(1000));
  std::vector<ndk::Event> events;
  for (std::vector<float>& sum : sums) {
    ndk::Execution execution(compilation);
    events.push_back(execution.input(0, a).input(1, a).output(0, sum).start());
  }
  for (const ndk::Event& event : events) event.wait();
  EXPECT_THAT(sums, testing::Each(testing::Each(2)));
}

TEST_F(ExecutionBehaviour, PaddedLengthsOnlyWhenEnabled) {
  const ndk::Compilation compilation = compileForAll(addModel());
  const std::vector<float> padded = {1, 2, 99, 99};
  std::vector<float> result(4, -1);
  ndk::Execution execution(compilation);
  EXPECT_CODE(BAD_DATA, setInput(execution, 0, padded));
  EXPECT_CODE(NO_ERROR,
              ANeuralNetworksExecution_enableInputAndOutputPadding(execution.get(), true));
  EXPECT_CODE(NO_ERROR, setInput(execution, 0, padded));
  EXPECT_CODE(BAD_STATE,
              ANeuralNetworksExecution_enableInputAndOutputPadding(execution.get(), false));
  EXPECT_CODE(NO_ERROR, setInput(execution, 1, padded));
  std::vector<float> tooShort(1);
  EXPECT_CODE(BAD_DATA, setOutput(execution, 0, tooShort));
  EXPECT_CODE(NO_ERROR, setOutput(execution, 0, result));
  execution.compute();
  EXPECT_THAT(result, testing::ElementsAre(2, 4, -1, -1));
}

}  // namespace
}  // namespace hearth::nnapi
