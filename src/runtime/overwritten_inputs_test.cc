// SPDX-License-Identifier: Apache-2.0
// Outputs over inputs, where several devices compute one after the other.
#include "runtime/overwritten_inputs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "drivers/reference/reference_device.h"
#include "hal/cts/model_builder.h"
#include "hal/request_check.h"
#include "hal/testing/stub_devices.h"
#include "memory/pool.h"
#include "runtime/fallback_model.h"
#include "runtime/partitioned_model.h"

namespace hearth::runtime {
namespace {

constexpr auto kFloat = graph::OperandType::kTensorFloat32;
constexpr uint32_t kCount = 32;
constexpr uint64_t kBytes = kCount * sizeof(float);

// Computes as another model, whose own copies are not counted.
class UncountedModel final : public hal::PreparedModel {
 public:
  explicit UncountedModel(std::shared_ptr<hal::PreparedModel> model) : model_(std::move(model)) {}
  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override {
    HEARTH_ASSIGN(auto execution, model_->createExecution(std::move(request)));
    return std::make_unique<UncountedExecution>(std::move(execution));
  }
  hal::StartReport startReport() const override { return model_->startReport(); }

 private:
  class UncountedExecution final : public hal::Execution {
   public:
    explicit UncountedExecution(std::unique_ptr<hal::Execution> execution)
        : execution_(std::move(execution)) {}
    hal::ExecutionResult compute(const base::Deadline& deadline) override {
      hal::ExecutionResult result = execution_->compute(deadline);
      result.copiedBytes = 0;
      return result;
    }

   private:
    const std::unique_ptr<hal::Execution> execution_;
  };

  const std::shared_ptr<hal::PreparedModel> model_;
};

// Takes only operations of one type, and counts no copies.
class OneTypeDevice final : public hal::ForwardingDevice {
 public:
  explicit OneTypeDevice(graph::OperationType type)
      : ForwardingDevice(drivers::reference::createDevice()), type_(type) {}
  Result<std::vector<hal::OperationSupport>> supportedOperations(
      const graph::Model& model) override {
    std::vector<hal::OperationSupport> support;
    for (const graph::Operation& operation : model.main().operations)
      support.push_back({operation.type == type_, "", ""});
    return support;
  }
  Result<std::shared_ptr<hal::PreparedModel>> prepareModel(
      std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
      hal::Cache cache) override {
    HEARTH_ASSIGN(auto made,
                  ForwardingDevice::prepareModel(std::move(model), options, std::move(cache)));
    return std::make_shared<UncountedModel>(std::move(made));
  }

 private:
  const graph::OperationType type_;
};

// Writes over its outputs, and fails or not.
class FailingModel final : public hal::PreparedModel {
 public:
  explicit FailingModel(bool fails = true) : fails_(fails) {}
  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override {
    return std::make_unique<FailingExecution>(std::move(request), fails_);
  }
  hal::StartReport startReport() const override { return {}; }

 private:
  class FailingExecution final : public hal::Execution {
   public:
    FailingExecution(hal::Request request, bool fails)
        : request_(std::move(request)), fails_(fails) {}
    hal::ExecutionResult compute(const base::Deadline&) override {
      for (const hal::Argument& output : request_.outputs)
        std::memset(*hal::addressOf(output, false), 0, output.length);
      hal::ExecutionResult result;
      if (fails_) result.status = fail(ErrorCode::kOpFailed, "The test fails.");
      return result;
    }

   private:
    const hal::Request request_;
    const bool fails_;
  };

  const bool fails_;
};

class OverwrittenInputsTest : public testing::Test {
 protected:
  // The absolute value and the negative of an input, on a device each; the negative comes first.
  void SetUp() override {
    hal::cts::ModelBuilder builder;
    const uint32_t input = builder.input(kFloat, {kCount});
    builder.operation(graph::OperationType::kAbs, {input}, {builder.output(kFloat, {kCount})});
    builder.operation(graph::OperationType::kNeg, {input}, {builder.output(kFloat, {kCount})});
    model_ = std::make_shared<const graph::Model>(builder.model());
    auto made = preparePartitioned(model_,
                                   {std::make_shared<OneTypeDevice>(graph::OperationType::kAbs),
                                    std::make_shared<OneTypeDevice>(graph::OperationType::kNeg)},
                                   {});
    ASSERT_TRUE(made) << made.error().toString();
    ASSERT_EQ(made->devices.size(), 2u);
    prepared_ = made->prepared;
  }

  static hal::Argument in(const memory::PoolRef& pool, uint64_t offset) {
    hal::Argument argument;
    argument.kind = hal::Argument::Kind::kPool;
    argument.pool = pool;
    argument.offset = offset;
    argument.length = kBytes;
    return argument;
  }
  static hal::Argument at(float* values) {
    hal::Argument argument;
    argument.kind = hal::Argument::Kind::kPointer;
    argument.pointer = values;
    argument.length = kBytes;
    return argument;
  }
  // Computes twice with these arguments, which lie in `values`: the input from the second kCount
  // on, the outputs from these places on. Returns how many bytes were copied.
  uint64_t run(const hal::Argument& input, const hal::Argument& absolute,
               const hal::Argument& negative, float* values, size_t absoluteAt, size_t negativeAt) {
    uint64_t copied = 0;
    const auto execution = prepared_->createExecution({{input}, {absolute, negative}});
    EXPECT_TRUE(execution) << execution.error().toString();
    for (int round = 0; execution && round < 2; ++round) {
      std::vector<float> given(kCount);
      for (uint32_t i = 0; i < kCount; ++i)
        given[i] = static_cast<float>(i) - static_cast<float>(5 + round);
      std::memcpy(values + kCount, given.data(), kBytes);
      const hal::ExecutionResult result = (*execution)->compute({});
      EXPECT_TRUE(result.status) << result.status.error().toString();
      for (uint32_t i = 0; i < kCount; ++i) {
        EXPECT_EQ(values[absoluteAt + i], std::fabs(given[i]));
        EXPECT_EQ(values[negativeAt + i], -given[i]);
      }
      copied = result.copiedBytes;
    }
    return copied;
  }

  std::shared_ptr<const graph::Model> model_;
  std::shared_ptr<hal::PreparedModel> prepared_;
};

TEST_F(OverwrittenInputsTest, AnOutputMayLieOverAnInputThatALaterStepReads) {
  const memory::PoolRef pool = *memory::Pool::anonymous(4 * kBytes);
  const memory::PoolRef other =
      *memory::Pool::ofFile(pool->fd(), 0, 4 * kBytes, memory::Mapping::Access::kReadWrite);
  auto* const values = reinterpret_cast<float*>(pool->mutableData());
  for (const auto& [absolute, negative] : {std::pair<size_t, size_t>{kCount, 3 * kCount},
                                           {3 * kCount, kCount},
                                           {kCount + 3, 0},
                                           {0, kCount + 1}}) {
    SCOPED_TRACE(testing::Message() << absolute << " and " << negative);
    run(at(values + kCount), at(values + absolute), at(values + negative), values, absolute,
        negative);
    for (const memory::PoolRef& outputs : {pool, other})
      run(in(pool, kBytes), in(outputs, absolute * sizeof(float)),
          in(outputs, negative * sizeof(float)), values, absolute, negative);
  }
}

TEST_F(OverwrittenInputsTest, AnInputThatNoEarlierStepOverwritesIsNotCopied) {
  std::vector<float> values(4 * kCount);
  EXPECT_EQ(run(at(&values[kCount]), at(values.data()), at(&values[2 * kCount]), values.data(), 0,
                2 * kCount),
            0u);
  EXPECT_EQ(
      run(at(&values[kCount]), at(&values[kCount]), at(values.data()), values.data(), kCount, 0),
      0u);
  EXPECT_EQ(
      run(at(&values[kCount]), at(values.data()), at(&values[kCount]), values.data(), 0, kCount),
      kBytes);
}

// To copy states that lie in place before each computation would take longer than many of them.
TEST_F(OverwrittenInputsTest, WhatADeviceMayHaveOverwrittenIsNotComputedAgain) {
  prepared_ = withFallback(std::make_shared<FailingModel>(), model_,
                           drivers::reference::createDevice(), {}, true);
  const memory::PoolRef pool = *memory::Pool::anonymous(4 * kBytes);
  const memory::PoolRef other =
      *memory::Pool::ofFile(pool->fd(), 0, 4 * kBytes, memory::Mapping::Access::kReadWrite);
  auto* const values = reinterpret_cast<float*>(pool->mutableData());
  EXPECT_EQ(run(in(pool, kBytes), in(pool, 0), in(pool, 2 * kBytes), values, 0, 2 * kCount), 0u);
  for (const memory::PoolRef& outputs : {pool, other}) {
    const auto execution =
        prepared_->createExecution({{in(pool, kBytes)}, {in(outputs, kBytes), in(outputs, 0)}});
    ASSERT_TRUE(execution) << execution.error().toString();
    const hal::ExecutionResult result = (*execution)->compute({});
    ASSERT_FALSE(result.status);
    EXPECT_EQ(result.status.error().code(), ErrorCode::kOpFailed);
  }
}

TEST_F(OverwrittenInputsTest, StatesInPlaceAreNotCopied) {
  prepared_ = withFallback(std::make_shared<FailingModel>(false), model_,
                           drivers::reference::createDevice(), {}, true);
  const memory::PoolRef pool = *memory::Pool::anonymous(2 * kBytes);
  const auto execution =
      prepared_->createExecution({{in(pool, 0)}, {in(pool, 0), in(pool, kBytes)}});
  ASSERT_TRUE(execution) << execution.error().toString();
  const hal::ExecutionResult result = (*execution)->compute({});
  EXPECT_TRUE(result.status) << result.status.error().toString();
  EXPECT_EQ(result.copiedBytes, 0u);
}

}  // namespace
}  // namespace hearth::runtime
