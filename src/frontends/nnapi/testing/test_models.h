// SPDX-License-Identifier: Apache-2.0
// For tests of the C API: small models, and a fixture and macros for all tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "base/log.h"
#include "hearth/nnapi.hpp"

namespace hearth::nnapi {

inline ndk::Type floats(std::vector<uint32_t> dimensions) {
  return {ANEURALNETWORKS_TENSOR_FLOAT32, std::move(dimensions), 0, 0};
}
inline ndk::Type ints(std::vector<uint32_t> dimensions) {
  return {ANEURALNETWORKS_TENSOR_INT32, std::move(dimensions), 0, 0};
}

// sum = a + b, all of these dimensions.
inline ndk::Model addModel(const std::vector<uint32_t>& dimensions = {2}) {
  ndk::Model model;
  const uint32_t a = model.operand(floats(dimensions));
  const uint32_t b = model.operand(floats(dimensions));
  const uint32_t sum = model.operand(floats(dimensions));
  model.operation(ANEURALNETWORKS_ADD, {a, b, model.int32(ANEURALNETWORKS_FUSED_NONE)}, {sum});
  model.finish({a, b}, {sum});
  return model;
}

// result = (a + b) * b, in two operations of different types.
inline ndk::Model addThenMulModel(const std::vector<uint32_t>& dimensions = {2}) {
  ndk::Model model;
  const uint32_t a = model.operand(floats(dimensions));
  const uint32_t b = model.operand(floats(dimensions));
  const uint32_t sum = model.operand(floats(dimensions));
  const uint32_t result = model.operand(floats(dimensions));
  const uint32_t none = model.int32(ANEURALNETWORKS_FUSED_NONE);
  model.operation(ANEURALNETWORKS_ADD, {a, b, none}, {sum});
  model.operation(ANEURALNETWORKS_MUL, {sum, b, none}, {result});
  model.finish({a, b}, {result});
  return model;
}

// The two largest of four values, and their indices in a vector of so many (0: unknown).
inline ndk::Model topTwoModel(uint32_t indexCount) {
  ndk::Model model;
  const uint32_t input = model.operand(floats({4}));
  const uint32_t values = model.operand(floats({2}));
  const uint32_t indices = model.operand(ints({indexCount}));
  model.operation(ANEURALNETWORKS_TOPK_V2, {input, model.int32(2)}, {values, indices});
  model.finish({input}, {values, indices});
  return model;
}

// A WHILE that computes n + 1 for ever.
inline ndk::Model endlessModel() {
  const auto condition = [] {
    ndk::Model model;
    const uint32_t n = model.operand(floats({1}));
    const uint32_t isSame = model.operand({ANEURALNETWORKS_TENSOR_BOOL8, {1}, 0, 0});
    model.operation(ANEURALNETWORKS_EQUAL, {n, n}, {isSame});
    model.finish({n}, {isSame});
    return model;
  }();
  const auto body = [] {
    ndk::Model model;
    const uint32_t n = model.operand(floats({1}));
    const uint32_t next = model.operand(floats({1}));
    const uint32_t one = model.constant<float>(floats({1}), {1});
    model.operation(ANEURALNETWORKS_ADD, {n, one, model.int32(0)}, {next});
    model.finish({n}, {next});
    return model;
  }();
  ndk::Model model;
  const uint32_t n = model.operand(floats({1}));
  const uint32_t end = model.operand(floats({1}));
  model.operation(ANEURALNETWORKS_WHILE, {model.model(condition), model.model(body), n}, {end});
  model.finish({n}, {end});
  return model;
}

// doubled = x + x; the activation, a scalar, is input 1.
inline ndk::Model doublingModel() {
  ndk::Model model;
  const uint32_t x = model.operand(floats({2}));
  const uint32_t activation = model.operand({ANEURALNETWORKS_INT32, {}, 0, 0});
  const uint32_t doubled = model.operand(floats({2}));
  model.operation(ANEURALNETWORKS_ADD, {x, x, activation}, {doubled});
  model.finish({x, activation}, {doubled});
  return model;
}

inline ndk::Compilation compileFor(const ndk::Model& model,
                                   const std::vector<const ANeuralNetworksDevice*>& devices) {
  ndk::Compilation compilation(model, devices);
  compilation.finish();
  return compilation;
}
inline ndk::Compilation compileForAll(const ndk::Model& model) {
  ndk::Compilation compilation(model);
  compilation.finish();
  return compilation;
}

// A built-in device takes all operations.
inline bool isBuiltIn(const ANeuralNetworksDevice* device) {
  const std::string name = ndk::nameOf(device);
  return name == "hearth-cpu" || name == "nnapi-reference";
}
// For this device alone if it takes the whole model, as the built-in ones do; else for it and the
// reference device, which computes the rest.
inline ndk::Compilation compileWith(const ndk::Model& model, const ANeuralNetworksDevice* device) {
  if (isBuiltIn(device)) return compileFor(model, {device});
  try {
    return compileFor(model, {device});
  } catch (const ndk::Exception&) {
    return compileFor(model, {device, ndk::findDevice("nnapi-reference")});
  }
}

// Sets both inputs of a model of unknown dimensions to a vector of these values.
inline void setBothInputs(const ndk::Execution& execution, const std::vector<float>& values) {
  const ndk::Type vector = floats({static_cast<uint32_t>(values.size())});
  const ANeuralNetworksOperandType type = vector.get();
  for (const int32_t index : {0, 1})
    ndk::check(ANeuralNetworksExecution_setInput(execution.get(), index, &type, values.data(),
                                                 values.size() * sizeof(float)),
               "setInput");
}

// Turns the log off, because these tests cause failures on purpose.
class QuietTest : public testing::Test {
 protected:
  void SetUp() override { base::setLogLevel(base::LogLevel::kOff); }
};

// Check the result code of a call, for instance with wrong arguments.
#define EXPECT_CODE(code, ...) EXPECT_EQ(__VA_ARGS__, ANEURALNETWORKS_##code)
#define ASSERT_CODE(code, ...) ASSERT_EQ(__VA_ARGS__, ANEURALNETWORKS_##code)

}  // namespace hearth::nnapi
