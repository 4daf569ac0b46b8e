// SPDX-License-Identifier: Apache-2.0
#include "runtime/model_sequence.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "hal/cts/model_builder.h"

namespace hearth::runtime {
namespace {

constexpr uint32_t kCount = 5000;

// Has one output of kCount floats, and copies a number of bytes whenever it computes.
class Step final : public hal::PreparedModel {
 public:
  explicit Step(uint64_t copiedBytes) : copiedBytes_(copiedBytes) {}
  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override {
    class Copying final : public hal::Execution {
     public:
      Copying(uint64_t room, uint64_t copiedBytes) : room_(room), copiedBytes_(copiedBytes) {}
      hal::ExecutionResult compute(const base::Deadline& /*deadline*/) override {
        hal::ExecutionResult result;
        const bool isSufficient = room_ >= kCount * sizeof(float);
        if (!isSufficient)
          result.status = fail(ErrorCode::kOutputInsufficientSize, "The test wants more room.");
        result.outputShapes.push_back({{kCount}, isSufficient});
        result.copiedBytes = copiedBytes_;
        return result;
      }

     private:
      const uint64_t room_, copiedBytes_;
    };
    return std::make_unique<Copying>(request.outputs[0].length, copiedBytes_);
  }
  hal::StartReport startReport() const override { return {}; }

 private:
  const uint64_t copiedBytes_;
};

TEST(ModelSequenceTest, WhatItsPartsCopyIsCounted) {
  hal::cts::ModelBuilder builder;
  const uint32_t input = builder.input(graph::OperandType::kTensorFloat32, {kCount});
  // Of unknown size: the first part runs twice.
  const uint32_t between = builder.temporary(graph::OperandType::kTensorFloat32, {0});
  const uint32_t output = builder.output(graph::OperandType::kTensorFloat32, {kCount});
  builder.operation(graph::OperationType::kAbs, {input}, {between});
  builder.operation(graph::OperationType::kNeg, {between}, {output});
  const auto sequence = makeModelSequence(std::make_shared<const graph::Model>(builder.model()),
                                          {{std::make_shared<Step>(100), {input}, {between}},
                                           {std::make_shared<Step>(3), {between}, {output}}});
  ASSERT_TRUE(sequence) << sequence.error().toString();
  std::vector<float> values(kCount);
  hal::Argument argument;
  argument.kind = hal::Argument::Kind::kPointer;
  argument.pointer = values.data();
  argument.length = kCount * sizeof(float);
  const auto execution = (*sequence)->createExecution({{argument}, {argument}});
  ASSERT_TRUE(execution) << execution.error().toString();
  for (const uint64_t expected : {203u, 103u}) {
    const hal::ExecutionResult result = (*execution)->compute({});
    ASSERT_TRUE(result.status) << result.status.error().toString();
    EXPECT_EQ(result.copiedBytes, expected);
  }
}

}  // namespace
}  // namespace hearth::runtime
