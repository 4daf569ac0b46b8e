// SPDX-License-Identifier: Apache-2.0
// Behaviours 52 to 58 of NNAPI: devices, partitioning, control flow, extensions, feature levels.
#include <algorithm>
#include <bit>
#include <memory>
#include <random>
#include <set>
#include <utility>

#include "android/NeuralNetworksExtensions.h"
#include "frontends/nnapi/testing/fake_device_test.h"

namespace hearth::nnapi {
namespace {

using ndk::Out;

class DeviceBehaviour : public FakeDeviceTest {};

TEST_F(DeviceBehaviour, B52_TheReferenceIsTheLastDevice) {
  const auto devices = ndk::devices();
  std::set<std::string> names;
  for (const ANeuralNetworksDevice* device : devices) {
    names.insert(ndk::nameOf(device));
    const char* version = nullptr;
    EXPECT_CODE(NO_ERROR, ANeuralNetworksDevice_getVersion(device, &version));
    EXPECT_STRNE(version, "");
    EXPECT_CODE(NO_ERROR, ANeuralNetworksDevice_wait(device));
  }
  EXPECT_EQ(names.size(), devices.size());
  EXPECT_EQ(ndk::nameOf(devices.back()), "nnapi-reference");
  int32_t type = 0;
  EXPECT_CODE(NO_ERROR, ANeuralNetworksDevice_getType(devices.back(), &type));
  EXPECT_EQ(type, ANEURALNETWORKS_DEVICE_CPU);
  ANeuralNetworksDevice* none = devices[0];
  EXPECT_CODE(BAD_DATA, ANeuralNetworks_getDevice(static_cast<uint32_t>(devices.size()), &none));
  EXPECT_EQ(none, nullptr);
}

TEST_F(DeviceBehaviour, B53_SupportIsReportedInTheClientsOrder) {
  setDevicesForTest({std::make_shared<FakeDevice>(FakeDeviceOptions{
                         .name = "adds", .operations = {graph::OperationType::kAdd}}),
                     std::make_shared<FakeDevice>(FakeDeviceOptions{
                         .name = "multiplies", .operations = {graph::OperationType::kMul}})});
  // x -> MUL -> ADD -> SUB, added in reverse order.
  ndk::Model model;
  const uint32_t x = model.operand(floats({2}));
  const uint32_t product = model.operand(floats({2}));
  const uint32_t sum = model.operand(floats({2}));
  const uint32_t difference = model.operand(floats({2}));
  const uint32_t none = model.int32(0);
  model.operation(ANEURALNETWORKS_SUB, {sum, x, none}, {difference});
  model.operation(ANEURALNETWORKS_ADD, {product, x, none}, {sum});
  model.operation(ANEURALNETWORKS_MUL, {x, x, none}, {product});
  bool supported[3];
  const auto devices = ndk::devices();
  const auto ask = [&](std::vector<const ANeuralNetworksDevice*> list) {
    return ANeuralNetworksModel_getSupportedOperationsForDevices(
        model.get(), list.data(), static_cast<uint32_t>(list.size()), supported);
  };
  EXPECT_CODE(BAD_STATE, ask({devices[0]}));
  model.finish({x}, {difference});
  EXPECT_CODE(BAD_DATA, ask({devices[0], devices[0]}));
  EXPECT_CODE(NO_ERROR, ask({devices[0]}));
  EXPECT_THAT(supported, testing::ElementsAre(false, true, false));
  EXPECT_CODE(NO_ERROR, ask({devices[1]}));
  EXPECT_THAT(supported, testing::ElementsAre(false, false, true));
  EXPECT_CODE(NO_ERROR, ask({devices[0], devices[1]}));
  EXPECT_THAT(supported, testing::ElementsAre(false, true, true));
}

TEST_F(DeviceBehaviour, B54_TheCheaperDeviceWins) {
  auto fast = std::make_shared<FakeDevice>(
      FakeDeviceOptions{.name = "fast",
                        .performance = {0.5f, 2.0f},
                        .relaxedPerformance = hal::PerformanceInfo{3, 3}});
  auto frugal = std::make_shared<FakeDevice>(
      FakeDeviceOptions{.name = "frugal", .performance = {0.9f, 0.5f}});
  auto same = std::make_shared<FakeDevice>(FakeDeviceOptions{.name = "same"});
  auto reference = std::make_shared<FakeDevice>(
      FakeDeviceOptions{.name = "nnapi-reference", .type = hal::DeviceType::kCpu});
  const auto preparedOn = [&](DeviceList list, int32_t preference, bool isRelaxed) {
    setDevicesForTest(list);
    for (const auto& device : {fast, frugal, same, reference}) device->preparations = 0;
    ndk::Model model;
    const uint32_t a = model.operand(floats({2}));
    const uint32_t sum = model.operand(floats({2}));
    model.operation(ANEURALNETWORKS_ADD, {a, a, model.int32(0)}, {sum});
    ANeuralNetworksModel_relaxComputationFloat32toFloat16(model.get(), isRelaxed);
    model.finish({a}, {sum});
    ndk::Compilation compilation(model);
    ndk::check(ANeuralNetworksCompilation_setPreference(compilation.get(), preference),
               "setPreference");
    compilation.finish();
    std::string names;
    for (const auto& device : {fast, frugal, same, reference})
      if (device->preparations != 0) names += device->name();
    return names;
  };
  constexpr int32_t kSpeed = ANEURALNETWORKS_PREFER_FAST_SINGLE_ANSWER;
  EXPECT_EQ(preparedOn({fast, frugal, reference}, kSpeed, false), "fast");
  EXPECT_EQ(preparedOn({frugal, fast, reference}, kSpeed, false), "fast");
  EXPECT_EQ(preparedOn({fast, frugal, reference}, ANEURALNETWORKS_PREFER_LOW_POWER, false),
            "frugal");
  EXPECT_EQ(preparedOn({fast, frugal, reference}, kSpeed, true), "frugal");
  EXPECT_EQ(preparedOn({same, reference}, kSpeed, false), "nnapi-reference");
}

// A random graph of element-wise operations over floats of one shape. Every value that no operation
// reads is an output, and so is one in the middle.
struct RandomGraph {
  ndk::Model model;
  size_t outputCount = 0;
};

RandomGraph randomGraph(std::mt19937& random, const std::vector<uint32_t>& dimensions,
                        bool hasDynamicOutputs) {
  RandomGraph graph;
  ndk::Model& model = graph.model;
  const auto pick = [&random](size_t below) {
    return std::uniform_int_distribution<size_t>(0, below - 1)(random);
  };
  const uint32_t none = model.int32(0);
  std::vector<uint32_t> values = {model.operand(floats(dimensions)),
                                  model.operand(floats(dimensions))};
  const std::vector<uint32_t> inputs = values;
  struct Step {
    int32_t code;
    uint32_t left, right;
  };
  std::vector<Step> steps;
  std::set<uint32_t> unread;
  const size_t count = 3 + pick(10);
  // The operands of the results are added below, with indices from here on.
  const uint32_t firstResult = none + 3;
  for (uint32_t i = 0; i < count; ++i) {
    constexpr int32_t kCodes[] = {ANEURALNETWORKS_ADD,     ANEURALNETWORKS_SUB,
                                  ANEURALNETWORKS_MAXIMUM, ANEURALNETWORKS_MINIMUM,
                                  ANEURALNETWORKS_ABS,     ANEURALNETWORKS_NEG};
    const Step step = {kCodes[pick(6)], values[pick(values.size())], values[pick(values.size())]};
    steps.push_back(step);
    unread.erase(step.left);
    if (step.code != ANEURALNETWORKS_ABS && step.code != ANEURALNETWORKS_NEG)
      unread.erase(step.right);
    values.push_back(firstResult + i);
    unread.insert(firstResult + i);
  }
  unread.insert(firstResult + static_cast<uint32_t>(pick(count)));
  for (uint32_t i = 0; i < count; ++i) {
    const bool isDynamic = hasDynamicOutputs && unread.contains(firstResult + i);
    model.operand(floats(isDynamic ? std::vector<uint32_t>(dimensions.size(), 0) : dimensions));
  }
  // Added in a random order, since the runtime sorts.
  std::vector<uint32_t> order(count);
  for (uint32_t i = 0; i < count; ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  for (const uint32_t i : order) {
    const Step& step = steps[i];
    std::vector<uint32_t> arguments = {step.left};
    if (step.code != ANEURALNETWORKS_ABS && step.code != ANEURALNETWORKS_NEG)
      arguments.push_back(step.right);
    if (step.code == ANEURALNETWORKS_ADD || step.code == ANEURALNETWORKS_SUB)
      arguments.push_back(none);
    model.operation(step.code, arguments, {firstResult + i});
  }
  graph.outputCount = unread.size();
  model.finish(inputs, {unread.begin(), unread.end()});
  return graph;
}

std::vector<std::vector<float>> compute(const ndk::Compilation& compilation, size_t outputCount) {
  const std::vector<float> a = {1, -2, 3.5f, 4, -5, 6};
  const std::vector<float> b = {0.5f, 2, -1, 8, 7, -6};
  std::vector<std::vector<float>> outputs(outputCount, std::vector<float>(6));
  ndk::Execution execution(compilation);
  execution.reusable().input(0, a).input(1, b);
  for (size_t i = 0; i < outputCount; ++i) execution.output(static_cast<int32_t>(i), outputs[i]);
  // The second computation starts with the memory that the first has written.
  execution.compute();
  execution.compute();
  for (size_t i = 0; i < outputCount; ++i)
    EXPECT_THAT(execution.outputDimensions(static_cast<int32_t>(i)), testing::ElementsAre(2, 3));
  return outputs;
}

TEST_F(DeviceBehaviour, B54_ADeviceThatCannotWinIsNotAsked) {
  auto adds = std::make_shared<FakeDevice>(FakeDeviceOptions{
      .name = "adds", .operations = {graph::OperationType::kAdd}, .performance = {0.5f, 0.5f}});
  auto slow =
      std::make_shared<FakeDevice>(FakeDeviceOptions{.name = "slow", .performance = {0.9f, 0.9f}});
  setDevicesForTest({adds, slow});
  const auto preparedOn = [&](ANeuralNetworksOperationType type) {
    for (const auto& device : {adds, slow}) device->questions = device->preparations = 0;
    ndk::Model model;
    const uint32_t a = model.operand(floats({2}));
    const uint32_t result = model.operand(floats({2}));
    model.operation(type, {a, a, model.int32(0)}, {result});
    model.finish({a}, {result});
    ndk::Compilation(model).finish();
    return adds->preparations != 0 ? "adds" : slow->preparations != 0 ? "slow" : "";
  };
  EXPECT_STREQ(preparedOn(ANEURALNETWORKS_ADD), "adds");
  EXPECT_EQ(slow->questions, 0);
  EXPECT_STREQ(preparedOn(ANEURALNETWORKS_MUL), "slow");
  EXPECT_EQ(adds->questions, 1);
  EXPECT_EQ(slow->questions, 1);
}

TEST_F(DeviceBehaviour, B55_RandomPartitionsGiveTheSameResults) {
  const auto restricted = [](const char* name, std::set<graph::OperationType> operations) {
    return std::make_shared<FakeDevice>(FakeDeviceOptions{
        .name = name, .operations = std::move(operations), .performance = {0.5f, 0.5f}});
  };
  using graph::OperationType;
  auto reference = std::make_shared<FakeDevice>(FakeDeviceOptions{.name = "nnapi-reference"});
  auto first = restricted("first", {OperationType::kAdd, OperationType::kAbs});
  auto second = restricted("second", {OperationType::kSub, OperationType::kMaximum});
  int divided = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const bool isDynamic = seed % 2 != 0;
    const RandomGraph graph = randomGraph(random, {2, 3}, isDynamic);
    setDevicesForTest({reference});
    const auto expected = compute(compileForAll(graph.model), graph.outputCount);
    for (const auto& device : {reference, first, second}) device->preparations = 0;
    setDevicesForTest({first, second, reference});
    EXPECT_EQ(compute(compileForAll(graph.model), graph.outputCount), expected);
    divided += first->preparations + second->preparations + reference->preparations > 1;
    // The order of the listed devices does not change the results.
    const auto devices = ndk::devices();
    ndk::Compilation listed(graph.model, {devices[2], devices[0], devices[1]});
    listed.finish();
    EXPECT_EQ(compute(listed, graph.outputCount), expected);
  }
  EXPECT_GT(divided, 150);
}

TEST_F(DeviceBehaviour, B55_ADeviceThatFailsInTheMiddleIsReplaced) {
  auto adds = std::make_shared<FakeDevice>(FakeDeviceOptions{
      .name = "adds", .operations = {graph::OperationType::kAdd}, .performance = {0.1f, 0.1f}});
  auto muls = std::make_shared<FakeDevice>(FakeDeviceOptions{
      .name = "muls", .operations = {graph::OperationType::kMul}, .performance = {0.1f, 0.1f}});
  auto reference = std::make_shared<FakeDevice>(FakeDeviceOptions{.name = "nnapi-reference"});
  setDevicesForTest({adds, muls, reference});
  const ndk::Model model = addThenMulModel();
  const ndk::Compilation compilation = compileForAll(model);
  const std::vector<float> a = {1, 2};
  const std::vector<float> b = {3, 4};
  std::vector<float> result(2);
  ndk::Execution(compilation).input(0, a).input(1, b).output(0, result).compute();
  EXPECT_THAT(result, testing::ElementsAre(12, 24));
  EXPECT_EQ(adds->computations, 1);
  EXPECT_EQ(muls->computations, 1);
  muls->options.computeError = ErrorCode::kOpFailed;
  result = {0, 0};
  ndk::Execution(compilation).input(0, a).input(1, b).output(0, result).compute();
  EXPECT_THAT(result, testing::ElementsAre(12, 24));
  // With a list without the reference, the failure is not repaired.
  const auto devices = ndk::devices();
  ndk::Compilation listed(model, {devices[0], devices[1]});
  listed.finish();
  ndk::Execution execution(listed);
  execution.input(0, a).input(1, b).output(0, result);
  EXPECT_CODE(OP_FAILED, ANeuralNetworksExecution_compute(execution.get()));
}

// The result of addThenMulModel({0}) for inputs of this size, where each element is `value`.
std::vector<float> addThenMul(const ndk::Execution& execution, uint32_t size, float value) {
  const std::vector<float> input(size, value);
  std::vector<float> result(size);
  setBothInputs(execution, input);
  EXPECT_CODE(NO_ERROR, ANeuralNetworksExecution_setOutput(execution.get(), 0, nullptr,
                                                           result.data(), size * sizeof(float)));
  EXPECT_CODE(NO_ERROR, ANeuralNetworksExecution_compute(execution.get()));
  return result;
}

TEST_F(DeviceBehaviour, B55_UnknownSizesGoBetweenDevices) {
  auto adds = std::make_shared<FakeDevice>(FakeDeviceOptions{
      .name = "adds", .operations = {graph::OperationType::kAdd}, .performance = {0.1f, 0.1f}});
  auto reference = std::make_shared<FakeDevice>(FakeDeviceOptions{.name = "nnapi-reference"});
  setDevicesForTest({adds, reference});
  const ndk::Model model = addThenMulModel({0});
  const auto devices = ndk::devices();
  ndk::Compilation listed(model, {devices[0], devices[1]});
  listed.finish();
  const ndk::Compilation unlisted = compileForAll(model);
  for (const ndk::Compilation* compilation : {&std::as_const(listed), &unlisted}) {
    ndk::Execution execution(*compilation);
    ASSERT_CODE(NO_ERROR, ANeuralNetworksExecution_setReusable(execution.get(), true));
    adds->computations = 0;
    // The sums need more room than an execution begins with, then less, then more than ever.
    for (const uint32_t size : {2u, 5000u, 7u, 6000u}) {
      const auto value = static_cast<float>(size);
      EXPECT_THAT(addThenMul(execution, size, value),
                  testing::AllOf(testing::SizeIs(size), testing::Each(2 * value * value)));
    }
    EXPECT_GE(adds->computations, 4);
  }
}

// The sum is an output, too, which a client may omit.
TEST_F(DeviceBehaviour, B55_AnOmittedOutputOfUnknownSizeGoesBetweenDevices) {
  setDevicesForTest({std::make_shared<FakeDevice>(FakeDeviceOptions{
                         .name = "adds", .operations = {graph::OperationType::kAdd}}),
                     std::make_shared<FakeDevice>(FakeDeviceOptions{
                         .name = "muls", .operations = {graph::OperationType::kMul}})});
  ndk::Model model;
  const uint32_t x = model.operand(floats({0}));
  const uint32_t sum = model.operand(floats({0}));
  const uint32_t product = model.operand(floats({0}));
  const uint32_t none = model.int32(ANEURALNETWORKS_FUSED_NONE);
  model.operation(ANEURALNETWORKS_ADD, {x, x, none}, {sum});
  model.operation(ANEURALNETWORKS_MUL, {sum, x, none}, {product});
  model.finish({x}, {sum, product});
  const ndk::Compilation compilation = compileForAll(model);
  const ndk::Type two = floats({2});
  const ANeuralNetworksOperandType type = two.get();
  const std::vector<float> input = {3, 4};
  for (const bool isOmitted : {true, false}) {
    std::vector<float> sums(2);
    std::vector<float> products(2);
    ndk::Execution execution(compilation);
    ASSERT_CODE(NO_ERROR,
                ANeuralNetworksExecution_setInput(execution.get(), 0, &type, input.data(), 8));
    ASSERT_CODE(NO_ERROR, ANeuralNetworksExecution_setOutput(execution.get(), 0, nullptr,
                                                             isOmitted ? nullptr : sums.data(),
                                                             isOmitted ? 0 : 8));
    execution.output(1, products).compute();
    EXPECT_THAT(products, testing::ElementsAre(18, 32));
    EXPECT_EQ(sums[0], isOmitted ? 0 : 6);
    EXPECT_EQ(sums[1], isOmitted ? 0 : 8);
    // Both outputs tell their shapes when they do not fit, also the one that reads the other.
    ndk::Execution small(compilation);
    ASSERT_CODE(NO_ERROR,
                ANeuralNetworksExecution_setInput(small.get(), 0, &type, input.data(), 8));
    ASSERT_CODE(NO_ERROR,
                ANeuralNetworksExecution_setOutput(
                    small.get(), 0, nullptr, isOmitted ? nullptr : sums.data(), isOmitted ? 0 : 4));
    ASSERT_CODE(NO_ERROR,
                ANeuralNetworksExecution_setOutput(small.get(), 1, nullptr, products.data(), 4));
    EXPECT_CODE(OUTPUT_INSUFFICIENT_SIZE, ANeuralNetworksExecution_compute(small.get()));
    uint32_t length = 0;
    EXPECT_CODE(OUTPUT_INSUFFICIENT_SIZE,
                ANeuralNetworksExecution_getOutputOperandDimensions(small.get(), 1, &length));
    EXPECT_EQ(length, 2u);
  }
}

// out = condition ? in + 1 : in * 10, applied twice, with the same two branches.
ndk::Model branchModel(int32_t conditionType) {
  const auto branch = [](int32_t code, float constant) {
    ndk::Model model;
    const uint32_t x = model.operand(floats({2}));
    const uint32_t y = model.operand(floats({2}));
    const uint32_t c = model.constant<float>(floats({1}), {constant});
    model.operation(code, {x, c, model.int32(0)}, {y});
    model.finish({x}, {y});
    return model;
  };
  const ndk::Model then = branch(ANEURALNETWORKS_ADD, 1);
  const ndk::Model otherwise = branch(ANEURALNETWORKS_MUL, 10);
  ndk::Model model;
  const uint32_t condition = model.operand({conditionType, {1}, 0, 0});
  const uint32_t x = model.operand(floats({2}));
  const uint32_t middle = model.operand(floats({2}));
  const uint32_t y = model.operand(floats({2}));
  const uint32_t thenOperand = model.model(then);
  const uint32_t elseOperand = model.model(otherwise);
  model.operation(ANEURALNETWORKS_IF, {condition, thenOperand, elseOperand, x}, {middle});
  model.operation(ANEURALNETWORKS_IF,
                  {condition, model.model(then), model.model(otherwise), middle}, {y});
  model.finish({condition, x}, {y});
  return model;
}

TEST_F(DeviceBehaviour, B56_ControlFlow) {
  EXPECT_THROW(branchModel(ANEURALNETWORKS_TENSOR_FLOAT32), ndk::Exception);
  // The model keeps branches that the client has freed.
  const ndk::Model model = branchModel(ANEURALNETWORKS_TENSOR_BOOL8);
  for (ANeuralNetworksDevice* device : ndk::devices()) {
    SCOPED_TRACE(ndk::nameOf(device));
    ndk::Compilation compilation(model, {device});
    compilation.finish();
    const std::vector<float> x = {1, 2};
    std::vector<float> y(2);
    for (const uint8_t condition : {1, 0}) {
      const std::vector<uint8_t> value = {condition};
      ndk::Execution(compilation).input(0, value).input(1, x).output(0, y).compute();
      if (condition != 0)
        EXPECT_THAT(y, testing::ElementsAre(3, 4));
      else
        EXPECT_THAT(y, testing::ElementsAre(100, 200));
    }
  }
}

// count = 0; while (count < limit) { sum = sum + x; count = count + 1 }; outputs count and sum.
ndk::Model loopModel() {
  const auto condition = [] {
    ndk::Model model;
    const uint32_t count = model.operand(floats({1}));
    const uint32_t sum = model.operand(floats({2}));
    const uint32_t x = model.operand(floats({2}));
    const uint32_t limit = model.operand(floats({1}));
    const uint32_t goesOn = model.operand({ANEURALNETWORKS_TENSOR_BOOL8, {1}, 0, 0});
    model.operation(ANEURALNETWORKS_LESS, {count, limit}, {goesOn});
    model.finish({count, sum, x, limit}, {goesOn});
    return model;
  }();
  const auto body = [] {
    ndk::Model model;
    const uint32_t count = model.operand(floats({1}));
    const uint32_t sum = model.operand(floats({2}));
    const uint32_t x = model.operand(floats({2}));
    const uint32_t limit = model.operand(floats({1}));
    const uint32_t nextCount = model.operand(floats({1}));
    const uint32_t nextSum = model.operand(floats({2}));
    const uint32_t none = model.int32(0);
    // count - (-1), so that the body needs two kinds of operations.
    const uint32_t minusOne = model.constant<float>(floats({1}), {-1});
    model.operation(ANEURALNETWORKS_SUB, {count, minusOne, none}, {nextCount});
    model.operation(ANEURALNETWORKS_ADD, {sum, x, none}, {nextSum});
    model.finish({count, sum, x, limit}, {nextCount, nextSum});
    return model;
  }();
  ndk::Model model;
  const uint32_t zero = model.constant<float>(floats({1}), {0});
  const uint32_t sum = model.operand(floats({2}));
  const uint32_t x = model.operand(floats({2}));
  const uint32_t limit = model.operand(floats({1}));
  const uint32_t lastCount = model.operand(floats({1}));
  const uint32_t lastSum = model.operand(floats({2}));
  model.operation(ANEURALNETWORKS_WHILE,
                  {model.model(condition), model.model(body), zero, sum, x, limit},
                  {lastCount, lastSum});
  model.finish({sum, x, limit}, {lastCount, lastSum});
  return model;
}

TEST_F(DeviceBehaviour, B56_ControlFlowBetweenDevices) {
  using graph::OperationType;
  const auto takes = [](const char* name, std::set<OperationType> operations) {
    return std::make_shared<FakeDevice>(
        FakeDeviceOptions{.name = name, .operations = std::move(operations)});
  };
  // Neither device takes IF or WHILE.
  auto first = takes("first", {OperationType::kAdd, OperationType::kLess});
  auto second = takes("second", {OperationType::kMul, OperationType::kSub, OperationType::kEqual});
  setDevicesForTest({first, second});
  const auto devices = ndk::devices();
  const auto compileForBoth = [&](const ndk::Model& model) {
    return compileFor(model, {devices[0], devices[1]});
  };
  const ndk::Compilation branches = compileForBoth(branchModel(ANEURALNETWORKS_TENSOR_BOOL8));
  const std::vector<float> x = {1, 2};
  for (const uint8_t condition : {1, 0}) {
    const std::vector<uint8_t> value = {condition};
    std::vector<float> y(2);
    ndk::Execution(branches).input(0, value).input(1, x).output(0, y).compute();
    EXPECT_EQ(y, (condition != 0 ? std::vector<float>{3, 4} : std::vector<float>{100, 200}));
  }
  const ndk::Compilation loop = compileForBoth(loopModel());
  for (const float times : {0.0f, 1.0f, 2.0f, 7.0f}) {
    SCOPED_TRACE(times);
    const std::vector<float> start = {10, 20};
    const std::vector<float> limit = {times};
    std::vector<float> count(1);
    std::vector<float> sum(2);
    ndk::Execution execution(loop);
    execution.input(0, start).input(1, x).input(2, limit);
    execution.output(0, count).output(1, sum).compute();
    EXPECT_THAT(count, testing::ElementsAre(times));
    EXPECT_THAT(sum, testing::ElementsAre(10 + times, 20 + 2 * times));
  }
  EXPECT_GT(first->computations, 0);
  EXPECT_GT(second->computations, 0);
  // The loop time-out ends an endless loop, too.
  const ndk::Compilation endless = compileForBoth(endlessModel());
  ndk::Execution execution(endless);
  const std::vector<float> n = {1};
  std::vector<float> end(1);
  execution.input(0, n).output(0, end);
  ASSERT_CODE(NO_ERROR, ANeuralNetworksExecution_setLoopTimeout(execution.get(), 20'000'000));
  EXPECT_CODE(MISSED_DEADLINE_TRANSIENT, ANeuralNetworksExecution_compute(execution.get()));
  // The compilation fails if no device takes an operation of a branch.
  second->options.operations = {OperationType::kSub};
  const ndk::Model model = branchModel(ANEURALNETWORKS_TENSOR_BOOL8);
  ndk::Compilation impossible(model, {devices[0], devices[1]});
  EXPECT_CODE(BAD_DATA, ANeuralNetworksCompilation_finish(impossible.get()));
}

TEST_F(DeviceBehaviour, B56_BranchesMustBeCompatible) {
  const auto branch = [](const std::vector<uint32_t>& dimensions) {
    ndk::Model model;
    const uint32_t x = model.operand(floats(dimensions));
    const uint32_t y = model.operand(floats(dimensions));
    model.operation(ANEURALNETWORKS_ABS, {x}, {y});
    model.finish({x}, {y});
    return model;
  };
  const auto addIf = [](const ndk::Model& then, const ndk::Model& otherwise) {
    ndk::Model model;
    const uint32_t condition = model.operand({ANEURALNETWORKS_TENSOR_BOOL8, {1}, 0, 0});
    const uint32_t x = model.operand(floats({2}));
    const uint32_t y = model.operand(floats({2}));
    const uint32_t inputs[] = {condition, model.model(then), model.model(otherwise), x};
    return ANeuralNetworksModel_addOperation(model.get(), ANEURALNETWORKS_IF, 4, inputs, 1, &y);
  };
  EXPECT_CODE(NO_ERROR, addIf(branch({2}), branch({2})));
  EXPECT_CODE(NO_ERROR, addIf(branch({0}), branch({})));
  EXPECT_CODE(BAD_DATA, addIf(branch({2}), branch({3})));
  EXPECT_CODE(BAD_DATA, addIf(branch({1, 2}), branch({2})));
}

TEST_F(DeviceBehaviour, B57_Extensions) {
  setDevicesForTest({std::make_shared<FakeDevice>(
                         FakeDeviceOptions{.name = "vendor", .extensions = {"com.example.things"}}),
                     std::make_shared<FakeDevice>(FakeDeviceOptions{.name = "nnapi-reference"})});
  const auto devices = ndk::devices();
  bool supported = false;
  EXPECT_CODE(NO_ERROR, ANeuralNetworksDevice_getExtensionSupport(devices[0], "com.example.things",
                                                                  &supported));
  EXPECT_TRUE(supported);
  EXPECT_CODE(NO_ERROR, ANeuralNetworksDevice_getExtensionSupport(devices[1], "com.example.things",
                                                                  &supported));
  EXPECT_FALSE(supported);

  ndk::Model model;
  int32_t type = 0;
  int32_t other = 0;
  int32_t operation = 0;
  const auto operandType = [&](const char* name, uint16_t code, int32_t* made) {
    return ANeuralNetworksModel_getExtensionOperandType(model.get(), name, code, made);
  };
  EXPECT_CODE(NO_ERROR, operandType("com.example.things", 7, &type));
  EXPECT_CODE(NO_ERROR, operandType("com.example.others", 7, &other));
  EXPECT_EQ(type & 0xffff, 7);
  EXPECT_NE(type >> 16, 0);
  EXPECT_NE(type, other);
  EXPECT_CODE(BAD_DATA, operandType("", 7, &other));
  EXPECT_CODE(NO_ERROR, ANeuralNetworksModel_getExtensionOperationType(
                            model.get(), "com.example.things", 7, &operation));
  EXPECT_EQ(operation, type);
  EXPECT_CODE(NO_ERROR, operandType("com.example.things", 7, &other));
  EXPECT_EQ(other, type);

  // No device knows a type or an operation of this extension.
  const ndk::Type unknown = {type, {2}, 0, 0};
  const ANeuralNetworksOperandType unknownType = unknown.get();
  EXPECT_CODE(BAD_DATA, ANeuralNetworksModel_addOperand(model.get(), &unknownType));
  const uint32_t x = model.operand(floats({2}));
  const uint32_t y = model.operand(floats({2}));
  model.operation(operation, {x}, {y});
  EXPECT_CODE(BAD_DATA, ANeuralNetworksModel_setOperandExtensionData(model.get(), 0, &type, 4));
  model.finish({x}, {y});
  bool answer = true;
  const ANeuralNetworksDevice* const first = devices[0];
  EXPECT_CODE(NO_ERROR, ANeuralNetworksModel_getSupportedOperationsForDevices(model.get(), &first,
                                                                              1, &answer));
  EXPECT_FALSE(answer);
  ndk::Compilation compilation(model);
  EXPECT_CODE(BAD_DATA, ANeuralNetworksCompilation_finish(compilation.get()));
  EXPECT_CODE(BAD_STATE, ANeuralNetworksCompilation_addExtensionAttribute(
                             compilation.get(), "com.example.things", 1, &type, 4));
}

TEST_F(DeviceBehaviour, B57_TheExtensionOfTfliteFilesRuns) {
  for (ANeuralNetworksDevice* device : ndk::devices()) {
    SCOPED_TRACE(ndk::nameOf(device));
    bool supported = false;
    EXPECT_CODE(NO_ERROR,
                ANeuralNetworksDevice_getExtensionSupport(device, "hearth.tflite", &supported));
    EXPECT_TRUE(supported);
    // CAST from 64-bit integers (code 0) to floats.
    ndk::Model model;
    int32_t int64 = 0;
    ASSERT_CODE(NO_ERROR, ANeuralNetworksModel_getExtensionOperandType(model.get(), "hearth.tflite",
                                                                       0, &int64));
    const uint32_t x = model.operand({int64, {2}, 0, 0});
    const uint32_t y = model.operand(floats({2}));
    model.operation(ANEURALNETWORKS_CAST, {x}, {y});
    model.finish({x}, {y});
    const ndk::Compilation compilation = compileWith(model, device);
    const std::vector<int64_t> values = {5, -6};
    std::vector<float> result(2);
    ndk::Execution(compilation).input(0, values).output(0, result).compute();
    EXPECT_THAT(result, testing::ElementsAre(5, -6));
  }
}

// Operators of programs are for files: to NNAPI their operation is an unknown one of the extension.
TEST_F(DeviceBehaviour, B57_NoClientMakesACustomOperation) {
  for (const uint16_t code : {uint16_t{49}, uint16_t{60000}}) {
    ndk::Model model;
    int32_t type = 0;
    ASSERT_CODE(NO_ERROR, ANeuralNetworksModel_getExtensionOperationType(
                              model.get(), "hearth.tflite", code, &type));
    const uint32_t x = model.operand(floats({2}));
    const uint32_t y = model.operand(floats({2}));
    model.operation(type, {x}, {y});
    model.finish({x}, {y});
    for (ANeuralNetworksDevice* device : ndk::devices()) {
      bool supported = true;
      EXPECT_CODE(NO_ERROR, ANeuralNetworksModel_getSupportedOperationsForDevices(
                                model.get(), &device, 1, &supported));
      EXPECT_FALSE(supported);
    }
    ndk::Compilation compilation(model);
    EXPECT_CODE(BAD_DATA, ANeuralNetworksCompilation_finish(compilation.get()));
  }
}

TEST_F(DeviceBehaviour, B58_FeatureLevelsAndPreferredMemory) {
  EXPECT_EQ(ANeuralNetworks_getRuntimeFeatureLevel(), ANEURALNETWORKS_FEATURE_LEVEL_7);
  for (const ANeuralNetworksDevice* device : ndk::devices()) {
    int64_t level = 0;
    EXPECT_CODE(NO_ERROR, ANeuralNetworksDevice_getFeatureLevel(device, &level));
    EXPECT_LE(level, ANeuralNetworks_getRuntimeFeatureLevel());
  }
  const ndk::Model model = addModel();
  const ndk::Compilation unfinished(model);
  const ndk::Compilation compilation = compileForAll(model);
  uint32_t value = 0;
  EXPECT_CODE(BAD_STATE, ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput(
                             unfinished.get(), 0, &value));
  const auto preferred = [&](auto* get, uint32_t index) {
    uint32_t bytes = 0;
    EXPECT_CODE(NO_ERROR, get(compilation.get(), index, &bytes));
    return bytes;
  };
  for (auto* const alignment : {ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput,
                                ANeuralNetworksCompilation_getPreferredMemoryAlignmentForOutput})
    EXPECT_TRUE(std::has_single_bit(preferred(alignment, 0)));
  for (auto* const padding : {ANeuralNetworksCompilation_getPreferredMemoryPaddingForInput,
                              ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput})
    EXPECT_GE(preferred(padding, 0), 1u);
  EXPECT_TRUE(std::has_single_bit(
      preferred(ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput, 1)));
  EXPECT_CODE(BAD_DATA, ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput(
                            compilation.get(), 2, &value));
  EXPECT_CODE(BAD_DATA, ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput(
                            compilation.get(), 1, &value));
}

}  // namespace
}  // namespace hearth::nnapi
