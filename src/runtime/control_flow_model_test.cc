// SPDX-License-Identifier: Apache-2.0
// What IF between devices hands to the model of a branch, and what it makes of its answer.
#include "runtime/control_flow_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "hal/cts/model_builder.h"

namespace hearth::runtime {
namespace {

using graph::OperandType;
using graph::OperationType;

// A branch that notes its requests, and answers as it is told.
class Branch final : public hal::PreparedModel {
 public:
  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override {
    requests.push_back(std::move(request));
    class Answering final : public hal::Execution {
     public:
      explicit Answering(const hal::ExecutionResult& answer) : answer_(answer) {}
      hal::ExecutionResult compute(const base::Deadline& /*deadline*/) override { return answer_; }

     private:
      const hal::ExecutionResult& answer_;
    };
    return std::make_unique<Answering>(answer);
  }
  hal::StartReport startReport() const override { return {}; }

  std::vector<hal::Request> requests;
  hal::ExecutionResult answer;
};

class IfBetweenDevicesTest : public testing::Test {
 protected:
  // condition ? (x + x, x * x) : (x * x, x + x). The part names the outputs in the other order.
  void SetUp() override {
    hal::cts::ModelBuilder builder;
    uint32_t subgraphs[2];
    for (const bool isElse : {false, true}) {
      subgraphs[isElse ? 1 : 0] = builder.beginSubgraph();
      const uint32_t x = builder.input(OperandType::kTensorFloat32, {2});
      for (const bool isSecond : {false, true})
        builder.operation(isElse == isSecond ? OperationType::kAdd : OperationType::kMul,
                          {x, x, builder.scalar(0)},
                          {builder.output(OperandType::kTensorFloat32, {2})});
    }
    builder.returnToMain();
    const uint32_t condition = builder.input(OperandType::kTensorBool8, {1});
    const uint32_t x = builder.input(OperandType::kTensorFloat32, {2});
    const uint32_t second = builder.output(OperandType::kTensorFloat32, {2});
    const uint32_t first = builder.output(OperandType::kTensorFloat32, {2});
    builder.operation(OperationType::kIf,
                      {condition, builder.subgraphOperand(subgraphs[0]),
                       builder.subgraphOperand(subgraphs[1]), x},
                      {first, second});
    auto prepared =
        prepareControlFlow(std::make_shared<const graph::Model>(builder.model()),
                           [&](const auto& /*subgraph*/) { return branches_[prepares_++]; });
    ASSERT_TRUE(prepared) << prepared.error().toString();
    prepared_ = *prepared;
  }

  template <typename T>
  static hal::Argument argument(std::vector<T>& values) {
    hal::Argument made;
    made.kind = hal::Argument::Kind::kPointer;
    made.pointer = values.data();
    made.length = values.size() * sizeof(T);
    return made;
  }
  hal::ExecutionResult compute(uint64_t loopTimeout = 7) {
    hal::Request request{{argument(condition_), argument(x_)},
                         {argument(second_), argument(first_)}};
    request.loopTimeout = loopTimeout;
    auto execution = prepared_->createExecution(std::move(request));
    if (!execution) {
      hal::ExecutionResult result;
      result.status = std::unexpected(std::move(execution.error()));
      return result;
    }
    return (*execution)->compute({});
  }

  std::vector<uint8_t> condition_ = {1};
  std::vector<float> x_ = {1, 2}, first_ = {0, 0}, second_ = {0, 0};
  int prepares_ = 0;
  const std::shared_ptr<Branch> branches_[2] = {std::make_shared<Branch>(),
                                                std::make_shared<Branch>()};
  std::shared_ptr<hal::PreparedModel> prepared_;
};

TEST_F(IfBetweenDevicesTest, TheBranchOfTheConditionGetsArgumentsInItsOwnOrder) {
  for (const uint8_t condition : {1, 0}) {
    condition_[0] = condition;
    Branch& branch = *branches_[condition != 0 ? 0 : 1];
    branch.answer.outputShapes = {{{2}, true}, {{3}, true}};
    const hal::ExecutionResult result = compute();
    ASSERT_TRUE(result.status) << result.status.error().toString();
    ASSERT_EQ(branch.requests.size(), 1u);
    const hal::Request& request = branch.requests[0];
    ASSERT_EQ(request.inputs.size(), 1u);
    EXPECT_EQ(request.inputs[0].pointer, x_.data());
    ASSERT_EQ(request.outputs.size(), 2u);
    EXPECT_EQ(request.outputs[0].pointer, first_.data());
    EXPECT_EQ(request.outputs[1].pointer, second_.data());
    ASSERT_EQ(result.outputShapes.size(), 2u);
    EXPECT_EQ(result.outputShapes[0].dimensions, graph::Dimensions{3});
    EXPECT_EQ(result.outputShapes[1].dimensions, graph::Dimensions{2});
  }
}

TEST_F(IfBetweenDevicesTest, ALoopInABranchHasTheTimeOfTheWhole) {
  ASSERT_TRUE(compute(1234).status);
  ASSERT_EQ(branches_[0]->requests.size(), 1u);
  EXPECT_EQ(branches_[0]->requests[0].loopTimeout, 1234u);
}

TEST_F(IfBetweenDevicesTest, ABranchThatFailsTellsNoShapes) {
  branches_[0]->answer.status = fail(ErrorCode::kOpFailed, "It fails as told.");
  const hal::ExecutionResult result = compute();
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code(), ErrorCode::kOpFailed);
  for (size_t i = 0; i < result.outputShapes.size(); ++i)
    EXPECT_EQ(result.outputShapes[i].dimensions, graph::Dimensions());
}

TEST_F(IfBetweenDevicesTest, TheReportNamesWhatItIs) {
  EXPECT_EQ(prepared_->startReport().reason, "control flow between devices");
}

TEST_F(IfBetweenDevicesTest, RequestsOfOtherCountsAreRefused) {
  const auto execution = prepared_->createExecution({{argument(x_)}, {argument(first_)}});
  ASSERT_FALSE(execution);
  EXPECT_EQ(execution.error().code(), ErrorCode::kBadData);
}

}  // namespace
}  // namespace hearth::runtime
