// SPDX-License-Identifier: Apache-2.0
// What IF and WHILE between devices hand to the models of their subgraphs, and what they make of
// the answers.
#include "runtime/control_flow_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "hal/cts/model_builder.h"
#include "hal/request_check.h"
#include "memory/pool.h"

namespace hearth::runtime {
namespace {

using graph::OperandType;
using graph::OperationType;

template <typename T>
hal::Argument argument(std::vector<T>& values) {
  hal::Argument made;
  made.kind = hal::Argument::Kind::kPointer;
  made.pointer = values.data();
  made.length = values.size() * sizeof(T);
  return made;
}

// The model of a subgraph. It notes its requests, and answers as it is told.
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

// Of two values that change places, as often as an input says.
class WhileBetweenDevicesTest : public testing::Test {
 protected:
  static constexpr uint32_t kCount = 8;
  static constexpr uint64_t kBytes = kCount * sizeof(float);

  // Says whether a first value is above 0; counts it down and exchanges the others.
  class Subgraph final : public hal::PreparedModel {
   public:
    explicit Subgraph(bool isBody) : isBody_(isBody) {}
    Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override {
      class Computing final : public hal::Execution {
       public:
        Computing(hal::Request request, bool isBody)
            : request_(std::move(request)), isBody_(isBody) {}
        hal::ExecutionResult compute(const base::Deadline& /*deadline*/) override {
          const auto floats = [](const hal::Argument& argument) {
            return argument.kind == hal::Argument::Kind::kPointer
                       ? static_cast<float*>(argument.pointer)
                       : reinterpret_cast<float*>(*hal::addressOf(argument, false));
          };
          const float left = floats(request_.inputs[0])[0];
          if (isBody_) {
            floats(request_.outputs[0])[0] = left - 1;
            for (const auto& [from, to] : {std::pair(1, 2), std::pair(2, 1)})
              std::memcpy(floats(request_.outputs[to]), floats(request_.inputs[from]), kBytes);
          } else {
            *static_cast<uint8_t*>(request_.outputs[0].pointer) = left > 0 ? 1 : 0;
          }
          hal::ExecutionResult result;
          result.copiedBytes = 1;
          return result;
        }

       private:
        const hal::Request request_;
        const bool isBody_;
      };
      return std::make_unique<Computing>(std::move(request), isBody_);
    }
    hal::StartReport startReport() const override { return {}; }

   private:
    const bool isBody_;
  };

  void SetUp() override {
    hal::cts::ModelBuilder builder;
    const auto addInputs = [&] {
      std::vector<uint32_t> made = {builder.input(OperandType::kTensorFloat32, {1})};
      for (int i = 0; i < 2; ++i)
        made.push_back(builder.input(OperandType::kTensorFloat32, {kCount}));
      return made;
    };
    const auto addOutputs = [&] {
      std::vector<uint32_t> made = {builder.output(OperandType::kTensorFloat32, {1})};
      for (int i = 0; i < 2; ++i)
        made.push_back(builder.output(OperandType::kTensorFloat32, {kCount}));
      return made;
    };
    const uint32_t condition = builder.beginSubgraph();
    addInputs();
    builder.output(OperandType::kTensorBool8, {1});
    const uint32_t body = builder.beginSubgraph();
    addInputs();
    addOutputs();
    builder.returnToMain();
    std::vector<uint32_t> inputs = addInputs();
    inputs.insert(inputs.begin(),
                  {builder.subgraphOperand(condition), builder.subgraphOperand(body)});
    builder.operation(OperationType::kWhile, inputs, addOutputs());
    auto prepared = prepareControlFlow(
        std::make_shared<const graph::Model>(builder.model()),
        [this](const auto& /*subgraph*/) { return std::make_shared<Subgraph>(prepares_++ == 1); });
    ASSERT_TRUE(prepared) << prepared.error().toString();
    prepared_ = *prepared;
  }

  static hal::Argument in(const memory::PoolRef& pool, uint64_t offset) {
    hal::Argument made;
    made.kind = hal::Argument::Kind::kPool;
    made.pool = pool;
    made.offset = offset;
    made.length = kBytes;
    return made;
  }
  // Computes with the values from the memory's begin on, and outputs at these places of another
  // mapping of it.
  void run(float iterations, uint64_t first, uint64_t second) {
    SCOPED_TRACE(testing::Message() << iterations << ": " << first << " and " << second);
    const memory::PoolRef pool = *memory::Pool::anonymous(4 * kBytes);
    const memory::PoolRef other =
        *memory::Pool::ofFile(pool->fd(), 0, 4 * kBytes, memory::Mapping::Access::kReadWrite);
    auto* const values = reinterpret_cast<float*>(pool->mutableData());
    std::vector<float> given(2 * kCount), count = {iterations}, left = {-1};
    std::iota(given.begin(), given.end(), 1.0f);
    for (const memory::PoolRef& outputs : {pool, other}) {
      std::memcpy(values, given.data(), 2 * kBytes);
      const auto execution =
          prepared_->createExecution({{argument(count), in(pool, 0), in(pool, kBytes)},
                                      {argument(left), in(outputs, first), in(outputs, second)}});
      ASSERT_TRUE(execution) << execution.error().toString();
      result_ = (*execution)->compute({});
      ASSERT_TRUE(result_.status) << result_.status.error().toString();
      EXPECT_EQ(left[0], 0);
      const bool isExchanged = iterations == 1;
      for (uint32_t i = 0; i < kCount; ++i) {
        EXPECT_EQ(values[first / sizeof(float) + i], given[i + (isExchanged ? kCount : 0)]);
        EXPECT_EQ(values[second / sizeof(float) + i], given[i + (isExchanged ? 0 : kCount)]);
      }
    }
  }

  int prepares_ = 0;
  std::shared_ptr<hal::PreparedModel> prepared_;
  hal::ExecutionResult result_;
};

TEST_F(WhileBetweenDevicesTest, OutputsMayLieOverInputs) {
  for (const float iterations : {0.0f, 1.0f, 2.0f}) {
    run(iterations, kBytes, 0);
    run(iterations, 0, kBytes);
    run(iterations, sizeof(float), 2 * kBytes);
    run(iterations, kBytes - sizeof(float), 2 * kBytes);
    run(iterations, 3 * kBytes, kBytes + sizeof(float));
  }
}

TEST_F(WhileBetweenDevicesTest, ItCountsWhatItAndTheDevicesCopy) {
  constexpr uint64_t kOutputs = sizeof(float) + 2 * kBytes;
  run(2, 2 * kBytes, 3 * kBytes);
  EXPECT_EQ(result_.copiedBytes, 5 + kOutputs);  // 3 conditions and 2 bodies
  run(0, 2 * kBytes, 3 * kBytes);
  EXPECT_EQ(result_.copiedBytes, 1 + 2 * kOutputs);
}

}  // namespace
}  // namespace hearth::runtime
