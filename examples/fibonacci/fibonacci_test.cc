// SPDX-License-Identifier: Apache-2.0
// The extension of the example driver, through the C API.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "android/NeuralNetworksExtensions.h"
#include "extension.h"
#include "fibonacci_device.h"
#include "frontends/nnapi/testing/fake_device_test.h"

namespace hearth::nnapi {
namespace {

using testing::ElementsAre;

int32_t operandType(const ndk::Model& model, uint16_t code) {
  int32_t type = 0;
  EXPECT_CODE(NO_ERROR, ANeuralNetworksModel_getExtensionOperandType(
                            model.get(), EXAMPLE_FIBONACCI_EXTENSION, code, &type));
  return type;
}

int32_t operationType(const ndk::Model& model, uint16_t code = EXAMPLE_FIBONACCI) {
  int32_t type = 0;
  EXPECT_CODE(NO_ERROR, ANeuralNetworksModel_getExtensionOperationType(
                            model.get(), EXAMPLE_FIBONACCI_EXTENSION, code, &type));
  return type;
}

// Numbers in steps of `scale` from `zeroPoint`.
ndk::Model quantizedModel(double scale, int64_t zeroPoint, uint32_t length = 0) {
  ndk::Model model;
  const uint32_t count = model.operand({operandType(model, EXAMPLE_INT64), {}, 0, 0});
  const uint32_t numbers =
      model.operand({operandType(model, EXAMPLE_TENSOR_QUANT64_ASYMM), {length}, 0, 0});
  const ExampleQuant64 quantization = {scale, zeroPoint};
  EXPECT_CODE(NO_ERROR,
              ANeuralNetworksModel_setOperandExtensionData(
                  model.get(), static_cast<int32_t>(numbers), &quantization, sizeof quantization));
  model.operation(operationType(model), {count}, {numbers});
  model.finish({count}, {numbers});
  return model;
}

// The same numbers as floats, times 10, which another device computes.
ndk::Model productModel() {
  ndk::Model model;
  const uint32_t count = model.operand({operandType(model, EXAMPLE_INT64), {}, 0, 0});
  const uint32_t numbers = model.operand(floats({0}));
  const uint32_t products = model.operand(floats({0}));
  const uint32_t ten = model.constant<float>(floats({1}), {10});
  model.operation(operationType(model), {count}, {numbers});
  model.operation(ANEURALNETWORKS_MUL, {numbers, ten, model.int32(0)}, {products});
  model.finish({count}, {products});
  return model;
}

// The code of a computation of so many numbers, on any device.
int computeCode(const ndk::Model& model, int64_t count, std::vector<int64_t>* numbers) {
  const ndk::Compilation compilation = compileForAll(model);
  const std::vector<int64_t> asked = {count};
  ndk::Execution execution(compilation);
  execution.input(0, asked).output(0, *numbers);
  return ANeuralNetworksExecution_compute(execution.get());
}

class FibonacciTest : public FakeDeviceTest {
 protected:
  void SetUp() override {
    FakeDeviceTest::SetUp();
    setDevicesForTest({example::createFibonacciDevice(), reference_});
  }

  const std::shared_ptr<FakeDevice> reference_ =
      std::make_shared<FakeDevice>(FakeDeviceOptions{.name = "nnapi-reference"});
};

TEST_F(FibonacciTest, ComputesInTypesOfItsOwn) {
  std::vector<int64_t> numbers(6);
  EXPECT_CODE(NO_ERROR, computeCode(quantizedModel(0.5, 100), 6, &numbers));
  EXPECT_THAT(numbers, ElementsAre(102, 102, 104, 106, 110, 116));
}

TEST_F(FibonacciTest, TellsHowManyNumbersThereAre) {
  const ndk::Model model = quantizedModel(1, 0);
  const ndk::Compilation compilation = compileForAll(model);
  std::vector<int64_t> numbers(4);
  const std::vector<int64_t> asked = {5};
  ndk::Execution execution(compilation);
  execution.input(0, asked).output(0, numbers);
  EXPECT_CODE(OUTPUT_INSUFFICIENT_SIZE, ANeuralNetworksExecution_compute(execution.get()));
  uint32_t length = 0;
  EXPECT_CODE(OUTPUT_INSUFFICIENT_SIZE,
              ANeuralNetworksExecution_getOutputOperandDimensions(execution.get(), 0, &length));
  EXPECT_EQ(length, 5u);
}

TEST_F(FibonacciTest, ANumberOfUnknownSizeGoesToAnotherDevice) {
  const ndk::Model model = productModel();
  const ndk::Compilation compilation = compileForAll(model);
  std::vector<float> products(90);
  const std::vector<int64_t> asked = {5};
  ndk::Execution execution(compilation);
  execution.input(0, asked).output(0, products).compute();
  uint32_t length = 0;
  EXPECT_CODE(NO_ERROR,
              ANeuralNetworksExecution_getOutputOperandDimensions(execution.get(), 0, &length));
  EXPECT_EQ(length, 5u);
  products.resize(5);
  EXPECT_THAT(products, ElementsAre(10, 10, 20, 30, 50));
  EXPECT_EQ(reference_->computations, 1);
}

TEST_F(FibonacciTest, WhatDoesNotFitIsAnError) {
  std::vector<int64_t> numbers(92);
  for (const int64_t count : {int64_t{0}, int64_t{-1}, int64_t{93}, INT64_MIN, INT64_MAX})
    EXPECT_CODE(OP_FAILED, computeCode(quantizedModel(1, 0), count, &numbers)) << count;
  // The last number that there is needs 63 bits; in steps of a half it needs 64.
  EXPECT_CODE(OP_FAILED, computeCode(quantizedModel(0.5, 0), 92, &numbers));
  EXPECT_CODE(NO_ERROR, computeCode(quantizedModel(1, 0), 92, &numbers));
  EXPECT_EQ(numbers[91], 7540113804746346496);  // rounded, from 7540113804746346429
  // A fixed length that is not the one that is asked for.
  numbers.resize(3);
  EXPECT_CODE(OP_FAILED, computeCode(quantizedModel(1, 0, 3), 4, &numbers));
}

TEST_F(FibonacciTest, TheDriverJudgesItsOperationsAndData) {
  const auto isSupported = [](const ndk::Model& model) {
    bool supported = true;
    const ANeuralNetworksDevice* const device = ndk::devices()[0];
    EXPECT_CODE(NO_ERROR, ANeuralNetworksModel_getSupportedOperationsForDevices(
                              model.get(), &device, 1, &supported));
    ndk::Compilation compilation(model);
    EXPECT_EQ(ANeuralNetworksCompilation_finish(compilation.get()),
              supported ? ANEURALNETWORKS_NO_ERROR : ANEURALNETWORKS_BAD_DATA);
    return supported;
  };
  EXPECT_TRUE(isSupported(quantizedModel(1, 0)));
  EXPECT_FALSE(isSupported(quantizedModel(0, 0)));
  EXPECT_FALSE(isSupported(quantizedModel(-1, 0)));
  // Without data, of another operation, and with an input of another type.
  for (const int kind : {0, 1, 2}) {
    ndk::Model model;
    const uint32_t count = kind == 2 ? model.operand({ANEURALNETWORKS_INT32, {}, 0, 0})
                                     : model.operand({operandType(model, EXAMPLE_INT64), {}, 0, 0});
    const uint32_t numbers =
        kind == 0 ? model.operand({operandType(model, EXAMPLE_TENSOR_QUANT64_ASYMM), {0}, 0, 0})
                  : model.operand(floats({0}));
    model.operation(operationType(model, kind == 1 ? 9 : EXAMPLE_FIBONACCI), {count}, {numbers});
    model.finish({count}, {numbers});
    EXPECT_FALSE(isSupported(model)) << kind;
  }
}

TEST_F(FibonacciTest, OperandsHaveTheDriversSizesAndNoScale) {
  ndk::Model model;
  const int32_t scalar = operandType(model, EXAMPLE_INT64);
  const int32_t tensor = operandType(model, EXAMPLE_TENSOR_QUANT64_ASYMM);
  const auto add = [&](const ndk::Type& type) {
    const ANeuralNetworksOperandType raw = type.get();
    return ANeuralNetworksModel_addOperand(model.get(), &raw);
  };
  EXPECT_EQ(add({scalar, {}, 0, 0}), ANEURALNETWORKS_NO_ERROR);  // operand 0
  EXPECT_EQ(add({tensor, {3}, 0, 0}), ANEURALNETWORKS_NO_ERROR);
  EXPECT_EQ(add({scalar, {1}, 0, 0}), ANEURALNETWORKS_BAD_DATA);
  EXPECT_EQ(add({tensor, {3}, 1, 0}), ANEURALNETWORKS_BAD_DATA);
  EXPECT_EQ(add({tensor, {3}, 0, 1}), ANEURALNETWORKS_BAD_DATA);
  EXPECT_EQ(add({tensor, {1u << 29}, 0, 0}), ANEURALNETWORKS_BAD_DATA);  // 2^32 bytes
  EXPECT_EQ(add({operandType(model, 2), {3}, 0, 0}), ANEURALNETWORKS_BAD_DATA);
  const int64_t values[3] = {};
  EXPECT_CODE(NO_ERROR, ANeuralNetworksModel_setOperandValue(model.get(), 0, values, 8));
  EXPECT_CODE(BAD_DATA, ANeuralNetworksModel_setOperandValue(model.get(), 0, values, 4));
  EXPECT_CODE(NO_ERROR, ANeuralNetworksModel_setOperandValue(model.get(), 1, values, 24));
  EXPECT_CODE(BAD_DATA, ANeuralNetworksModel_setOperandValue(model.get(), 1, values, 12));
  EXPECT_CODE(BAD_DATA, ANeuralNetworksModel_setOperandExtensionData(model.get(), 1, values, 0));
  // An operation of NNAPI takes no such operand.
  const uint32_t y = model.operand(floats({3}));
  const uint32_t inputs[] = {1};
  EXPECT_CODE(BAD_DATA, ANeuralNetworksModel_addOperation(model.get(), ANEURALNETWORKS_RELU, 1,
                                                          inputs, 1, &y));
}

// The count is a constant, and the operation lies in both branches of an IF, which goes to no
// device as a whole.
TEST_F(FibonacciTest, ControlFlowReachesTheDriver) {
  const auto branch = [](int64_t count) {
    ndk::Model model;
    const uint32_t ignored = model.operand(floats({1}));
    const uint32_t constant =
        model.constant<int64_t>({operandType(model, EXAMPLE_INT64), {}, 0, 0}, {count});
    const uint32_t numbers = model.operand(floats({0}));
    const uint32_t sum = model.operand(floats({0}));
    model.operation(operationType(model), {constant}, {numbers});
    model.operation(ANEURALNETWORKS_ADD, {numbers, ignored, model.int32(0)}, {sum});
    model.finish({ignored}, {sum});
    return model;
  };
  const ndk::Model four = branch(4);
  const ndk::Model two = branch(2);
  ndk::Model model;
  const uint32_t which = model.operand({ANEURALNETWORKS_TENSOR_BOOL8, {1}, 0, 0});
  const uint32_t x = model.operand(floats({1}));
  const uint32_t y = model.operand(floats({0}));
  model.operation(ANEURALNETWORKS_IF, {which, model.model(four), model.model(two), x}, {y});
  model.finish({which, x}, {y});
  const ndk::Compilation compilation = compileForAll(model);
  for (const uint8_t isFour : {1, 0}) {
    const std::vector<uint8_t> condition = {isFour};
    const std::vector<float> hundred = {100};
    std::vector<float> sums(4);
    ndk::Execution execution(compilation);
    execution.input(0, condition).input(1, hundred).output(0, sums).compute();
    sums.resize(isFour != 0 ? 4 : 2);
    std::vector<float> expected = {101, 101, 102, 103};
    expected.resize(sums.size());
    EXPECT_EQ(sums, expected);
  }
}

TEST_F(FibonacciTest, DevicesThatDescribeAnExtensionDifferentlyDisableIt) {
  setDevicesForTest({example::createFibonacciDevice(),
                     std::make_shared<FakeDevice>(FakeDeviceOptions{
                         .name = "another", .extensions = {EXAMPLE_FIBONACCI_EXTENSION}})});
  ndk::Model model;
  const ndk::Type type = {operandType(model, EXAMPLE_INT64), {}, 0, 0};
  const ANeuralNetworksOperandType raw = type.get();
  EXPECT_CODE(BAD_DATA, ANeuralNetworksModel_addOperand(model.get(), &raw));
}

}  // namespace
}  // namespace hearth::nnapi
