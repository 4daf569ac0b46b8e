// SPDX-License-Identifier: Apache-2.0
// Memory domains: arguments that lie in the memory of the GPU.
#include "drivers/vulkan/device_tensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "drivers/vulkan/testing/reference_test.h"
#include "hal/cts/model_builder.h"
#include "memory/budget.h"

namespace hearth::vulkan {
namespace {

using graph::OperandType;
using graph::OperationType;
using hal::cts::ModelBuilder;

constexpr auto kFloat = OperandType::kTensorFloat32;
constexpr size_t kCount = 5;
using Values = std::vector<float>;

class DeviceTensorsTest : public ReferenceTest {
 protected:
  std::shared_ptr<hal::PreparedModel> prepare(const ModelBuilder& builder) {
    auto prepared =
        device_->prepareModel(std::make_shared<const graph::Model>(builder.model()), {}, {});
    EXPECT_TRUE(prepared) << prepared.error().toString();
    return *prepared;
  }
  // output = state * 2 + input, with the product in the arena.
  std::shared_ptr<hal::PreparedModel> prepareStep() {
    ModelBuilder builder;
    const uint32_t state = builder.input(kFloat, {kCount});
    const uint32_t input = builder.input(kFloat, {kCount});
    const uint32_t product = builder.temporary(kFloat, {kCount});
    const uint32_t output = builder.output(kFloat, {kCount});
    const uint32_t none = builder.scalar(0);
    const Values two = {2};
    builder.operation(OperationType::kMul, {state, builder.constant(kFloat, {1}, two), none},
                      {product});
    builder.operation(OperationType::kAdd, {product, input, none}, {output});
    return prepare(builder);
  }

  // A buffer for the first input and the output of a model.
  std::unique_ptr<hal::Buffer> allocate(const std::shared_ptr<hal::PreparedModel>& model) {
    auto buffer = device_->allocate({}, {{model, true, 0}, {model, false, 0}});
    EXPECT_TRUE(buffer) << buffer.error().toString();
    return *std::move(buffer);
  }
  static Values valuesOf(hal::Buffer& buffer) {
    const memory::PoolRef pool = *memory::Pool::anonymous(kCount * sizeof(float));
    const Status copied = buffer.copyTo(pool);
    EXPECT_TRUE(copied) << copied.error().toString();
    const auto* values = reinterpret_cast<const float*>(pool->data());
    return {values, values + kCount};
  }
  static void set(hal::Buffer& buffer, const Values& values) {
    const memory::PoolRef pool = *memory::Pool::anonymous(kCount * sizeof(float));
    std::memcpy(pool->mutableData(), values.data(), kCount * sizeof(float));
    const Status copied = buffer.copyFrom(pool, {kCount});
    EXPECT_TRUE(copied) << copied.error().toString();
  }

  static hal::Argument in(const hal::Buffer& buffer) {
    hal::Argument argument;
    argument.kind = hal::Argument::Kind::kBuffer;
    argument.token = buffer.token();
    return argument;
  }
  static hal::Argument in(Values& values) {
    hal::Argument argument;
    argument.kind = hal::Argument::Kind::kPointer;
    argument.pointer = values.data();
    argument.length = values.size() * sizeof(float);
    return argument;
  }
  // Computes once and returns how many bytes were copied.
  static uint64_t run(hal::PreparedModel& model, std::vector<hal::Argument> inputs,
                      std::vector<hal::Argument> outputs) {
    const auto execution = model.createExecution({std::move(inputs), std::move(outputs)});
    EXPECT_TRUE(execution) << execution.error().toString();
    if (!execution) return 0;
    const hal::ExecutionResult result = (*execution)->compute({});
    EXPECT_TRUE(result.status) << result.status.error().toString();
    return result.copiedBytes;
  }
  static std::optional<ErrorCode> refusal(hal::PreparedModel& model,
                                          std::vector<hal::Argument> inputs,
                                          std::vector<hal::Argument> outputs) {
    const auto execution = model.createExecution({std::move(inputs), std::move(outputs)});
    if (execution) return std::nullopt;
    return execution.error().code();
  }
};

TEST_F(DeviceTensorsTest, AStateStaysOnTheDeviceFromRunToRun) {
  const auto model = prepareStep();
  const auto first = allocate(model), second = allocate(model), step = allocate(model);
  EXPECT_EQ(valuesOf(*first), Values(kCount, 0.0f)) << "what others left in the memory";
  set(*step, Values(kCount, 1.0f));
  hal::Buffer* from = first.get();
  hal::Buffer* to = second.get();
  for (const float expected : {1.0f, 3.0f, 7.0f, 15.0f, 31.0f}) {
    EXPECT_EQ(run(*model, {in(*from), in(*step)}, {in(*to)}), 0u);
    EXPECT_EQ(valuesOf(*to), Values(kCount, expected));
    std::swap(from, to);
  }
}

TEST_F(DeviceTensorsTest, ArgumentsOfTheHostAndOfTheDeviceGoTogether) {
  const auto model = prepareStep();
  const auto buffer = allocate(model);
  set(*buffer, {1, 2, 3, 4, 5});
  Values input = {10, 20, 30, 40, 50}, output(kCount);
  EXPECT_EQ(run(*model, {in(*buffer), in(input)}, {in(output)}), 2 * kCount * sizeof(float));
  EXPECT_EQ(output, (Values{12, 24, 36, 48, 60}));
  EXPECT_EQ(run(*model, {in(input), in(input)}, {in(*buffer)}), 2 * kCount * sizeof(float));
  EXPECT_EQ(valuesOf(*buffer), (Values{30, 60, 90, 120, 150}));
  EXPECT_EQ(run(*model, {in(input), in(output)}, {in(output)}), 3 * kCount * sizeof(float));
  EXPECT_EQ(output, (Values{32, 64, 96, 128, 160}));
}

TEST_F(DeviceTensorsTest, AnOutputMayBeTheMemoryOfAnInput) {
  const auto model = prepareStep();
  const auto buffer = allocate(model);
  set(*buffer, {1, 2, 3, 4, 5});
  for (const Values& expected : {Values{3, 6, 9, 12, 15}, Values{9, 18, 27, 36, 45}}) {
    EXPECT_EQ(run(*model, {in(*buffer), in(*buffer)}, {in(*buffer)}), 0u);
    EXPECT_EQ(valuesOf(*buffer), expected);
  }
}

// Where an element of the output is not made of the same one of the input.
TEST_F(DeviceTensorsTest, AnInputIsReadBeforeItsMemoryIsWritten) {
  constexpr uint32_t kMany = 1000;
  ModelBuilder builder;
  const uint32_t input = builder.input(kFloat, {kMany});
  const std::vector<int32_t> axes = {0};
  builder.operation(OperationType::kReverse,
                    {input, builder.constant(OperandType::kTensorInt32, {1}, axes)},
                    {builder.output(kFloat, {kMany})});
  const auto model = prepare(builder);
  const auto buffer = allocate(model);
  const memory::PoolRef pool = *memory::Pool::anonymous(kMany * sizeof(float));
  auto* const values = reinterpret_cast<float*>(pool->mutableData());
  for (uint32_t i = 0; i < kMany; ++i) values[i] = static_cast<float>(i);
  ASSERT_TRUE(buffer->copyFrom(pool, {kMany}));
  EXPECT_EQ(run(*model, {in(*buffer)}, {in(*buffer)}), 0u);
  ASSERT_TRUE(buffer->copyTo(pool));
  for (uint32_t i = 0; i < kMany; ++i) ASSERT_EQ(values[i], static_cast<float>(kMany - 1 - i));
}

TEST_F(DeviceTensorsTest, OutputsThatShareMemoryInThePlanAreCopied) {
  ModelBuilder builder;
  const uint32_t input = builder.input(kFloat, {kCount});
  const std::vector<int32_t> shape = {1, kCount};
  const uint32_t dimensions = builder.constant(OperandType::kTensorInt32, {2}, shape);
  for (int i = 0; i < 2; ++i)
    builder.operation(OperationType::kReshape, {input, dimensions},
                      {builder.output(kFloat, {1, kCount})});
  const auto model = prepare(builder);
  auto from = device_->allocate({}, {{model, true, 0}});
  auto first = device_->allocate({}, {{model, false, 0}, {model, false, 1}});
  auto second = device_->allocate({}, {{model, false, 0}, {model, false, 1}});
  ASSERT_TRUE(from && first && second);
  const Values values = {1, 2, 3, 4, 5};
  set(**from, values);
  EXPECT_EQ(run(*model, {in(**from)}, {in(**first), in(**second)}), 0u);
  EXPECT_EQ(valuesOf(**first), values);
  EXPECT_EQ(valuesOf(**second), values);
  EXPECT_EQ(refusal(*model, {in(**from)}, {in(**first), in(**first)}), ErrorCode::kBadData);
}

// A line of delays: each state is that which came before it, and the last one leaves.
TEST_F(DeviceTensorsTest, AnOutputThatIsAnInputIsTheOneFromBefore) {
  ModelBuilder builder;
  const std::vector<int32_t> shape = {kCount};
  const uint32_t dimensions = builder.constant(OperandType::kTensorInt32, {1}, shape);
  const uint32_t input = builder.input(kFloat, {kCount});
  const uint32_t first = builder.input(kFloat, {kCount});
  const uint32_t second = builder.input(kFloat, {kCount});
  builder.operation(OperationType::kAbs, {input}, {builder.output(kFloat, {kCount})});
  for (const uint32_t state : {first, second})
    builder.operation(OperationType::kReshape, {state, dimensions},
                      {builder.output(kFloat, {kCount})});
  const auto model = prepare(builder);
  auto one = device_->allocate({}, {{model, true, 1}, {model, false, 0}});
  auto two = device_->allocate({}, {{model, true, 2}, {model, false, 1}});
  auto left = device_->allocate({}, {{model, false, 2}});
  ASSERT_TRUE(one && two && left);
  for (int step = 1; step <= 5; ++step) {
    const auto at = [&](int before) {
      return Values(kCount, static_cast<float>(std::max(step - before, 0)));
    };
    Values values = at(0), output(kCount);
    const bool isOnDevice = step % 2 == 0;
    run(*model, {in(values), in(**one), in(**two)},
        {in(**one), in(**two), isOnDevice ? in(**left) : in(output)});
    EXPECT_EQ(isOnDevice ? valuesOf(**left) : output, at(2));
    EXPECT_EQ(valuesOf(**two), at(1));
    EXPECT_EQ(valuesOf(**one), at(0));
  }
}

TEST_F(DeviceTensorsTest, InputsMayChangePlaces) {
  ModelBuilder builder;
  const std::vector<int32_t> shape = {kCount};
  const uint32_t dimensions = builder.constant(OperandType::kTensorInt32, {1}, shape);
  const uint32_t a = builder.input(kFloat, {kCount});
  const uint32_t b = builder.input(kFloat, {kCount});
  for (const uint32_t input : {b, a})
    builder.operation(OperationType::kReshape, {input, dimensions},
                      {builder.output(kFloat, {kCount})});
  const auto model = prepare(builder);
  const auto one = allocate(model);
  auto two = device_->allocate({}, {{model, true, 1}, {model, false, 1}});
  ASSERT_TRUE(two);
  const Values values = {1, 2, 3, 4, 5}, others = {6, 7, 8, 9, 10};
  set(*one, values);
  set(**two, others);
  EXPECT_EQ(run(*model, {in(*one), in(**two)}, {in(*one), in(**two)}), 0u);
  EXPECT_EQ(valuesOf(*one), others);
  EXPECT_EQ(valuesOf(**two), values);
}

TEST_F(DeviceTensorsTest, WhatDoesNotFitIsRefused) {
  const auto model = prepareStep();
  auto buffer = allocate(model);
  Values input(kCount), output(kCount);
  hal::Argument unknown = in(*buffer);
  unknown.token += 1000;
  EXPECT_EQ(refusal(*model, {unknown, in(input)}, {in(output)}), ErrorCode::kBadData);
  hal::Argument wrong = in(*buffer);
  wrong.dimensions = {kCount + 1};
  EXPECT_EQ(refusal(*model, {wrong, in(input)}, {in(output)}), ErrorCode::kBadData);
  EXPECT_EQ(refusal(*model, {in(*buffer)}, {in(output)}), ErrorCode::kBadData);
  const hal::Argument released = in(*buffer);
  const memory::PoolRef small = *memory::Pool::anonymous(kCount);
  EXPECT_FALSE(buffer->copyTo(small));
  EXPECT_FALSE(buffer->copyFrom(small, {}));
  EXPECT_FALSE(buffer->copyTo(nullptr));
  buffer.reset();
  EXPECT_EQ(refusal(*model, {released, in(input)}, {in(output)}), ErrorCode::kBadData);
  EXPECT_FALSE(device_->allocate({}, {}));
  EXPECT_FALSE(device_->allocate({}, {{model, true, 2}}));
  EXPECT_FALSE(device_->allocate({{kCount + 1}}, {{model, true, 0}}));
  EXPECT_FALSE(device_->allocate({}, {{nullptr, true, 0}}));
  // Another model's, with more elements.
  ModelBuilder builder;
  builder.operation(OperationType::kAbs, {builder.input(kFloat, {kCount + 1})},
                    {builder.output(kFloat, {kCount + 1})});
  const auto larger = prepare(builder);
  const auto room = allocate(larger);
  EXPECT_EQ(refusal(*model, {in(*room), in(input)}, {in(output)}), ErrorCode::kBadData);
  const auto both = device_->allocate({}, {{model, true, 0}, {larger, true, 0}});
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().code(), ErrorCode::kBadData);
}

// Counts what is taken, up to a limit.
class CountingBudget final : public memory::Budget {
 public:
  Result<std::shared_ptr<void>> reserve(uint64_t bytes) override {
    if (*taken_ + bytes > limit)
      return fail(ErrorCode::kResourceExhaustedTransient, "The budget is {} bytes.", limit);
    *taken_ += bytes;
    return std::shared_ptr<void>(nullptr, [taken = taken_, bytes](void*) { *taken -= bytes; });
  }
  uint64_t taken() const { return *taken_; }

  uint64_t limit = UINT64_MAX;

 private:
  const std::shared_ptr<std::atomic<uint64_t>> taken_ = std::make_shared<std::atomic<uint64_t>>();
};

TEST_F(DeviceTensorsTest, MemoryCountsForWhoeverItIsFor) {
  CountingBudget budget;
  {
    const memory::BudgetScope scope(&budget);
    const auto model = prepareStep();
    const uint64_t ofModel = budget.taken();
    EXPECT_GT(ofModel, 0u);
    const auto buffer = allocate(model);
    const uint64_t ofBoth = budget.taken();
    EXPECT_GE(ofBoth, ofModel + kCount * sizeof(float));
    budget.limit = ofBoth;
    const auto more = device_->allocate({}, {{model, true, 0}});
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().code(), ErrorCode::kResourceExhaustedTransient);
  }
  EXPECT_EQ(budget.taken(), 0u);
}

TEST_F(DeviceTensorsTest, ABufferThatIsReleasedLivesAsLongAsItsExecution) {
  const auto model = prepareStep();
  auto buffer = allocate(model);
  set(*buffer, {1, 2, 3, 4, 5});
  Values input(kCount), output(kCount);
  const auto execution = model->createExecution({{in(*buffer), in(input)}, {in(output)}});
  ASSERT_TRUE(execution);
  buffer.reset();
  ASSERT_TRUE((*execution)->compute({}).status);
  EXPECT_EQ(output, (Values{2, 4, 6, 8, 10}));
}

}  // namespace
}  // namespace hearth::vulkan
