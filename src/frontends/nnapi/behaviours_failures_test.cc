// SPDX-License-Identifier: Apache-2.0
// Behaviours 24, 32, 39 and 41 of NNAPI: the code of a failed computation, on every device and in
// every mode, and the state of the execution after it.
#include <memory>

#include "android/NeuralNetworksExtensions.h"
#include "frontends/nnapi/testing/fake_device_test.h"
#include "frontends/nnapi/testing/test_modes.h"

namespace hearth::nnapi {
namespace {

using ndk::Out;

class FailureBehaviour : public FakeDeviceTest {
 protected:
  // Computes a model of two inputs [2] and one output of this many floats in each mode, and expects
  // OP_FAILED and the state of an execution that failed.
  static void expectOpFailed(const ndk::Compilation& compilation, size_t outputSize) {
    const std::vector<float> values = {1, 2};
    for (const ComputeMode& mode : computeModes()) {
      SCOPED_TRACE(mode.name);
      std::vector<float> result(outputSize);
      ndk::Execution execution(compilation);
      execution.input(0, values).input(1, values).output(0, result);
      EXPECT_CODE(OP_FAILED, mode.compute(compilation, execution));
      expectUsedUp(compilation, execution);
    }
  }

  static void expectUsedUp(const ndk::Compilation& compilation, ndk::Execution& execution) {
    uint32_t rank = 0;
    EXPECT_CODE(BAD_STATE,
                ANeuralNetworksExecution_getOutputOperandRank(execution.get(), 0, &rank));
    for (const ComputeMode& mode : computeModes())
      EXPECT_CODE(BAD_STATE, mode.compute(compilation, execution));
  }

  // Expects the failure on each device, and on those that the runtime chooses.
  static void expectOpFailedEverywhere(const ndk::Model& model, size_t outputSize) {
    for (ANeuralNetworksDevice* device : ndk::devices()) {
      SCOPED_TRACE(ndk::nameOf(device));
      expectOpFailed(compileWith(model, device), outputSize);
    }
    SCOPED_TRACE("no list");
    expectOpFailed(compileForAll(model), outputSize);
  }

  const std::vector<float> a_ = {1, 2};
  std::vector<float> sum_ = {0, 0};
};

// result = (a + b) * b, with declared dimensions that may conflict.
ndk::Model conflictingModel(const std::vector<uint32_t>& sumDimensions,
                            const std::vector<uint32_t>& resultDimensions) {
  ndk::Model model;
  const uint32_t a = model.operand(floats({2}));
  const uint32_t b = model.operand(floats({2}));
  const uint32_t sum = model.operand(floats(sumDimensions));
  const uint32_t result = model.operand(floats(resultDimensions));
  const uint32_t none = model.int32(ANEURALNETWORKS_FUSED_NONE);
  model.operation(ANEURALNETWORKS_ADD, {a, b, none}, {sum});
  model.operation(ANEURALNETWORKS_MUL, {sum, b, none}, {result});
  model.finish({a, b}, {result});
  return model;
}

// a + b in the branches of an IF with a constant condition. `declared` are the dimensions of the
// IF's result, `inner` those of the branches' results.
ndk::Model conflictingBranchModel(const std::vector<uint32_t>& declared,
                                  const std::vector<uint32_t>& inner) {
  const auto branch = [&] {
    ndk::Model model;
    const uint32_t a = model.operand(floats({2}));
    const uint32_t b = model.operand(floats({2}));
    const uint32_t sum = model.operand(floats(inner));
    model.operation(ANEURALNETWORKS_ADD, {a, b, model.int32(0)}, {sum});
    model.finish({a, b}, {sum});
    return model;
  };
  const ndk::Model then = branch();
  const ndk::Model otherwise = branch();
  ndk::Model model;
  const uint32_t a = model.operand(floats({2}));
  const uint32_t b = model.operand(floats({2}));
  const uint32_t result = model.operand(floats(declared));
  const uint32_t condition =
      model.constant<uint8_t>({ANEURALNETWORKS_TENSOR_BOOL8, {1}, 0, 0}, {1});
  model.operation(ANEURALNETWORKS_IF, {condition, model.model(then), model.model(otherwise), a, b},
                  {result});
  model.finish({a, b}, {result});
  return model;
}

TEST_F(FailureBehaviour, DeclaredShapesThatConflictFailWhenTheyAreComputed) {
  expectOpFailedEverywhere(conflictingModel({2}, {3}), 3);
  expectOpFailedEverywhere(conflictingModel({3}, {2}), 2);
  expectOpFailedEverywhere(conflictingModel({3}, {3}), 3);
  expectOpFailedEverywhere(conflictingModel({2}, {2, 1}), 2);
  expectOpFailedEverywhere(conflictingModel({1, 2}, {2}), 2);
  // The shapes of the operation's inputs conflict.
  ndk::Model model;
  const uint32_t a = model.operand(floats({2}));
  const uint32_t b = model.operand(floats({2}));
  const uint32_t three = model.constant<float>(floats({3}), {1, 2, 3});
  const uint32_t middle = model.operand(floats({3}));
  const uint32_t result = model.operand(floats({3}));
  model.operation(ANEURALNETWORKS_ADD, {a, three, model.int32(0)}, {middle});
  model.operation(ANEURALNETWORKS_ADD, {b, middle, model.int32(0)}, {result});
  model.finish({a, b}, {result});
  expectOpFailedEverywhere(model, 3);
}

TEST_F(FailureBehaviour, DeclaredShapesThatConflictInBranches) {
  expectOpFailedEverywhere(conflictingBranchModel({3}, {3}), 3);
  expectOpFailedEverywhere(conflictingBranchModel({3}, {0}), 3);
  expectOpFailedEverywhere(conflictingBranchModel({1}, {0}), 1);
}

TEST_F(FailureBehaviour, DeclaredShapesThatConflictBetweenDevices) {
  using graph::OperationType;
  auto adds = std::make_shared<FakeDevice>(
      FakeDeviceOptions{.name = "adds", .operations = {OperationType::kAdd}});
  auto muls = std::make_shared<FakeDevice>(
      FakeDeviceOptions{.name = "muls", .operations = {OperationType::kMul}});
  setDevicesForTest({adds, muls});
  const auto devices = ndk::devices();
  expectOpFailed(compileFor(conflictingModel({2}, {3}), {devices[0], devices[1]}), 3);
  expectOpFailed(compileFor(conflictingModel({3}, {2}), {devices[0], devices[1]}), 2);
  // Neither device takes IF.
  for (const std::vector<uint32_t>& inner : {std::vector<uint32_t>{3}, std::vector<uint32_t>{0}})
    expectOpFailed(compileFor(conflictingBranchModel({3}, inner), {devices[0], devices[1]}), 3);

  // The fallback to the reference changes nothing.
  auto reference = std::make_shared<FakeDevice>(FakeDeviceOptions{.name = "nnapi-reference"});
  adds->options.performance = muls->options.performance = {0.1f, 0.1f};
  setDevicesForTest({adds, muls, reference});
  expectOpFailed(compileForAll(conflictingModel({2}, {3})), 3);
  expectOpFailed(compileForAll(conflictingModel({3}, {2})), 2);
}

TEST_F(FailureBehaviour, ShapesThatConflictAtRunTime) {
  std::vector<ndk::Compilation> compilations;
  const ndk::Model model = addModel({0});
  for (ANeuralNetworksDevice* device : ndk::devices())
    compilations.push_back(compileFor(model, {device}));
  compilations.push_back(compileForAll(model));
  const std::vector<float> three = {1, 2, 3};
  for (const ndk::Compilation& compilation : compilations) {
    for (const ComputeMode& mode : computeModes()) {
      SCOPED_TRACE(mode.name);
      // The shapes of the inputs conflict.
      ndk::Execution inputs(compilation);
      ASSERT_CODE(NO_ERROR, setTypedInput(inputs, 0, floats({2}), a_));
      ASSERT_CODE(NO_ERROR, setTypedInput(inputs, 1, floats({3}), three));
      std::vector<float> result(3);
      ASSERT_CODE(NO_ERROR, setTypedOutput(inputs, 0, floats({3}), result));
      EXPECT_CODE(OP_FAILED, mode.compute(compilation, inputs));
      expectUsedUp(compilation, inputs);
      // The result conflicts with the client's type argument.
      for (const uint32_t size : {1, 3}) {
        ndk::Execution output(compilation);
        for (const int32_t index : {0, 1})
          ASSERT_CODE(NO_ERROR, setTypedInput(output, index, floats({2}), a_));
        std::vector<float> sized(size);
        ASSERT_CODE(NO_ERROR, setTypedOutput(output, 0, floats({size}), sized));
        EXPECT_CODE(OP_FAILED, mode.compute(compilation, output));
        expectUsedUp(compilation, output);
      }
    }
  }
  // The device can infer the dimensions, but the model's output leaves them open.
  ndk::Model known;
  const uint32_t a = known.operand(floats({2}));
  const uint32_t sum = known.operand(floats({0}));
  known.operation(ANEURALNETWORKS_ADD, {a, a, known.int32(0)}, {sum});
  known.finish({a}, {sum});
  for (ANeuralNetworksDevice* device : ndk::devices()) {
    SCOPED_TRACE(ndk::nameOf(device));
    const ndk::Compilation compilation = compileFor(known, {device});
    for (const uint32_t size : {1, 3}) {
      ndk::Execution execution(compilation);
      std::vector<float> sized(size);
      execution.input(0, a_);
      ASSERT_CODE(NO_ERROR, setTypedOutput(execution, 0, floats({size}), sized));
      EXPECT_CODE(OP_FAILED, ANeuralNetworksExecution_compute(execution.get()));
    }
  }
}

TEST_F(FailureBehaviour, ComputationsThatFailInsideADevice) {
  // An activation that does not exist, as a constant and as an input.
  ndk::Model constant;
  {
    const uint32_t a = constant.operand(floats({2}));
    const uint32_t b = constant.operand(floats({2}));
    const uint32_t sum = constant.operand(floats({2}));
    constant.operation(ANEURALNETWORKS_ADD, {a, b, constant.int32(999)}, {sum});
    constant.finish({a, b}, {sum});
  }
  expectOpFailedEverywhere(constant, 2);

  // GATHER with an index out of range.
  ndk::Model gather;
  {
    const uint32_t a = gather.operand(floats({2}));
    const uint32_t b = gather.operand(floats({2}));
    const uint32_t sum = gather.operand(floats({2}));
    const uint32_t result = gather.operand(floats({2}));
    const uint32_t indices = gather.constant<int32_t>(ints({2}), {0, 7});
    gather.operation(ANEURALNETWORKS_ADD, {a, b, gather.int32(0)}, {sum});
    gather.operation(ANEURALNETWORKS_GATHER, {sum, gather.int32(0), indices}, {result});
    gather.finish({a, b}, {result});
  }
  expectOpFailedEverywhere(gather, 2);

  const ndk::Model input = doublingModel();
  const std::vector<int32_t> wrong = {999};
  for (ANeuralNetworksDevice* device : ndk::devices()) {
    SCOPED_TRACE(ndk::nameOf(device));
    const ndk::Compilation compilation = compileWith(input, device);
    for (const ComputeMode& mode : computeModes()) {
      SCOPED_TRACE(mode.name);
      ndk::Execution execution(compilation);
      execution.input(0, a_).input(1, wrong).output(0, sum_);
      EXPECT_CODE(OP_FAILED, mode.compute(compilation, execution));
    }
  }
}

// An input that the operation needs is omitted.
TEST_F(FailureBehaviour, NeededInputsThatAreOmitted) {
  for (ANeuralNetworksDevice* device : ndk::devices()) {
    SCOPED_TRACE(ndk::nameOf(device));
    const ndk::Compilation compilation = compileFor(addModel(), {device});
    for (const ComputeMode& mode : computeModes()) {
      SCOPED_TRACE(mode.name);
      ndk::Execution execution(compilation);
      execution.input(0, a_).output(0, sum_);
      ASSERT_CODE(NO_ERROR,
                  ANeuralNetworksExecution_setInput(execution.get(), 1, nullptr, nullptr, 0));
      EXPECT_CODE(OP_FAILED, mode.compute(compilation, execution));
    }
  }
}

constexpr ErrorCode kMeaningless[] = {
    ErrorCode::kBadData,     ErrorCode::kUnexpectedNull, ErrorCode::kBadState,
    ErrorCode::kIncomplete,  ErrorCode::kUnmappable,     ErrorCode::kOutOfMemory,
    ErrorCode::kDeadObject,  ErrorCode::kNotFound,       ErrorCode::kIo,
    ErrorCode::kUnsupported, ErrorCode::kOpFailed};

TEST_F(FailureBehaviour, WhateverADriverReturnsIsOpFailed) {
  auto device =
      std::make_shared<FakeDevice>(FakeDeviceOptions{.name = "fails", .performance = {0.1f, 0.1f}});
  auto reference = std::make_shared<FakeDevice>(FakeDeviceOptions{.name = "nnapi-reference"});
  setDevicesForTest({device, reference});
  const ndk::Model model = addModel();
  const ndk::Compilation listed = compileFor(model, {ndk::devices()[0]});
  const ndk::Compilation everywhere = compileForAll(model);
  for (const bool isCreation : {false, true}) {
    for (const ErrorCode code : kMeaningless) {
      SCOPED_TRACE(base::errorCodeName(code));
      (isCreation ? device->options.createError : device->options.computeError) = code;
      expectOpFailed(listed, 2);
      // Without a list, the reference computes instead.
      sum_ = {0, 0};
      ndk::Execution(everywhere).input(0, a_).input(1, a_).output(0, sum_).compute();
      EXPECT_THAT(sum_, testing::ElementsAre(2, 4));
      device->options.createError.reset();
      device->options.computeError.reset();
    }
  }
  device->options.createError = ErrorCode::kOutputInsufficientSize;
  expectOpFailed(listed, 2);
}

// The reference would fail the same way, so it does not compute again.
TEST_F(FailureBehaviour, OutputsThatAreTooSmallDoNotGoToTheReference) {
  auto device =
      std::make_shared<FakeDevice>(FakeDeviceOptions{.name = "first", .performance = {0.1f, 0.1f}});
  auto reference = std::make_shared<FakeDevice>(FakeDeviceOptions{.name = "nnapi-reference"});
  setDevicesForTest({device, reference});
  const ndk::Compilation compilation = compileForAll(addModel({0}));
  ndk::Execution execution(compilation);
  for (const int32_t index : {0, 1})
    ASSERT_CODE(NO_ERROR, setTypedInput(execution, index, floats({2}), a_));
  std::vector<float> tooSmall(1);
  execution.output(0, tooSmall);
  EXPECT_CODE(OUTPUT_INSUFFICIENT_SIZE, ANeuralNetworksExecution_compute(execution.get()));
  EXPECT_EQ(device->computations, 1);
  EXPECT_EQ(reference->preparations, 0);
}

TEST_F(FailureBehaviour, ResultsOfADriverThatCannotBe) {
  auto device = std::make_shared<FakeDevice>(FakeDeviceOptions{.name = "lies"});
  setDevicesForTest({device});
  const ndk::Compilation known = compileFor(addModel(), {ndk::devices()[0]});
  device->options.changeResult = [](hal::ExecutionResult* result) {
    result->outputShapes.clear();
  };
  expectOpFailed(known, 2);
  device->options.changeResult = [](hal::ExecutionResult* result) {
    result->outputShapes.push_back(result->outputShapes[0]);
  };
  expectOpFailed(known, 2);
  for (const graph::Dimensions& wrong :
       {graph::Dimensions{3}, graph::Dimensions{2, 1}, graph::Dimensions{}, graph::Dimensions{0}}) {
    device->options.changeResult = [wrong](hal::ExecutionResult* result) {
      result->outputShapes.change()[0].dimensions = wrong;
    };
    expectOpFailed(known, 2);
  }
  device->options.changeResult = [](hal::ExecutionResult* result) {
    result->outputShapes.change()[0].isSufficient = false;
  };
  expectOpFailed(known, 2);
  // The device reports a small buffer, but every output is sufficient.
  device->options.changeResult = [](hal::ExecutionResult* result) {
    result->status = fail(ErrorCode::kOutputInsufficientSize, "An output is too small.");
  };
  expectOpFailed(known, 2);
}

TEST_F(FailureBehaviour, AnExecutionThatTheDriverDoesNotCreateIsUsedUp) {
  auto device = std::make_shared<FakeDevice>(
      FakeDeviceOptions{.name = "fails", .createError = ErrorCode::kUnavailableDevice});
  setDevicesForTest({device});
  const ndk::Compilation compilation = compileFor(addModel(), {ndk::devices()[0]});
  for (const ComputeMode& mode : computeModes()) {
    SCOPED_TRACE(mode.name);
    ndk::Execution once(compilation);
    once.input(0, a_).input(1, a_).output(0, sum_);
    EXPECT_CODE(UNAVAILABLE_DEVICE, mode.compute(compilation, once));
    expectUsedUp(compilation, once);
    EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_setInput(once.get(), 0, nullptr, a_.data(), 8));

    // A reusable execution can be tried again.
    ndk::Execution again(compilation);
    again.reusable().input(0, a_).input(1, a_).output(0, sum_);
    EXPECT_CODE(UNAVAILABLE_DEVICE, mode.compute(compilation, again));
    device->options.createError.reset();
    sum_ = {0, 0};
    EXPECT_CODE(NO_ERROR, mode.compute(compilation, again));
    EXPECT_THAT(sum_, testing::ElementsAre(2, 4));
    device->options.createError = ErrorCode::kUnavailableDevice;
  }
  // In the background, wait returns the failure.
  ndk::Execution async(compilation);
  ndk::EventHandle event;
  async.input(0, a_).input(1, a_).output(0, sum_);
  ASSERT_CODE(NO_ERROR, ANeuralNetworksExecution_startCompute(async.get(), Out(event)));
  EXPECT_CODE(UNAVAILABLE_DEVICE, ANeuralNetworksEvent_wait(event.get()));
}

TEST_F(FailureBehaviour, AttributesAreRefusedByStateFirst) {
  const ndk::Compilation compilation = compileForAll(addModel());
  const uint32_t data = 0;
  const auto addTo = [&](const ndk::Execution& execution) {
    return ANeuralNetworksExecution_addExtensionAttribute(execution.get(), "com.example.things", 1,
                                                          &data, sizeof data);
  };
  for (const ComputeMode& mode : computeModes()) {
    ndk::Execution execution(compilation);
    EXPECT_CODE(BAD_DATA, addTo(execution));
    execution.input(0, a_).input(1, a_).output(0, sum_);
    EXPECT_CODE(NO_ERROR, mode.compute(compilation, execution));
    EXPECT_CODE(BAD_STATE, addTo(execution));
  }
  const ndk::Model model = addModel();
  ndk::Compilation open(model);
  const auto addToCompilation = [&] {
    return ANeuralNetworksCompilation_addExtensionAttribute(open.get(), "com.example.things", 1,
                                                            &data, sizeof data);
  };
  EXPECT_CODE(BAD_DATA, addToCompilation());
  open.finish();
  EXPECT_CODE(BAD_STATE, addToCompilation());
}

}  // namespace
}  // namespace hearth::nnapi
