// SPDX-License-Identifier: Apache-2.0
#include "runtime/device_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace hearth::runtime {
namespace {

// The answers that the device gives.
struct Answers {
  std::optional<ErrorCode> createError;
  bool createsNothing = false;
  hal::ExecutionResult result;
};

class ScriptedExecution final : public hal::Execution {
 public:
  explicit ScriptedExecution(const Answers& answers) : answers_(answers) {}
  hal::ExecutionResult compute(const base::Deadline&) override { return answers_.result; }

 private:
  const Answers& answers_;
};

class ScriptedModel final : public hal::PreparedModel {
 public:
  explicit ScriptedModel(const Answers& answers) : answers_(answers) {}
  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request) override {
    if (answers_.createError) return fail(*answers_.createError, "The device says no.");
    if (answers_.createsNothing) return nullptr;
    return std::make_unique<ScriptedExecution>(answers_);
  }
  hal::StartReport startReport() const override { return {.reason = "whole"}; }
  hal::StartReport startReportSoFar() const override { return {.reason = "so far"}; }

 private:
  const Answers& answers_;
};

class DeviceModelTest : public testing::Test {
 protected:
  DeviceModelTest() {
    // The outputs are [2, ?] and of unknown rank.
    auto model = std::make_shared<graph::Model>();
    graph::Subgraph& main = model->subgraphs.emplace_back();
    main.operands.resize(2);
    main.operands[0].dimensions = {2, 0};
    main.outputs = {0, 1};
    model_ = asDeviceModel(std::make_shared<ScriptedModel>(answers_), model, "scripted");
    answers_.result.outputShapes = {{{2, 3}, true}, {{4}, true}};
  }

  // Computes with these dimensions of the outputs in the request.
  hal::ExecutionResult compute(const graph::Dimensions& first = {},
                               const graph::Dimensions& second = {}) {
    hal::Request request;
    request.outputs.resize(2);
    request.outputs[0].dimensions = first;
    request.outputs[1].dimensions = second;
    auto execution = model_->createExecution(std::move(request));
    if (execution) return (*execution)->compute(base::Deadline());
    hal::ExecutionResult result;
    result.status = std::unexpected(std::move(execution.error()));
    return result;
  }

  ErrorCode failure(const graph::Dimensions& first = {}, const graph::Dimensions& second = {}) {
    const hal::ExecutionResult result = compute(first, second);
    EXPECT_FALSE(result.status);
    return result.status ? ErrorCode::kNotFound : result.status.error().code();
  }

  Answers answers_;
  std::shared_ptr<hal::PreparedModel> model_;
};

TEST_F(DeviceModelTest, ValidResultsPass) {
  answers_.result.timing.onDevice = 7;
  const hal::ExecutionResult result = compute({2, 3}, {4});
  EXPECT_TRUE(result.status);
  EXPECT_EQ(result.outputShapes[1].dimensions, graph::Dimensions{4});
  EXPECT_EQ(result.timing.onDevice, 7u);
  EXPECT_EQ(model_->startReport().reason, "whole");
  EXPECT_EQ(model_->startReportSoFar().reason, "so far");

  answers_.result.status = fail(ErrorCode::kOutputInsufficientSize, "An output is too small.");
  answers_.result.outputShapes.change()[1].isSufficient = false;
  const hal::ExecutionResult tooSmall = compute();
  EXPECT_EQ(tooSmall.status.error().code(), ErrorCode::kOutputInsufficientSize);
  EXPECT_TRUE(tooSmall.outputShapes[0].isSufficient);
  EXPECT_FALSE(tooSmall.outputShapes[1].isSufficient);
}

TEST_F(DeviceModelTest, FailuresOfADeviceAreFailedOperations) {
  for (const ErrorCode code : {ErrorCode::kIncomplete, ErrorCode::kUnexpectedNull,
                               ErrorCode::kBadData, ErrorCode::kOpFailed, ErrorCode::kBadState,
                               ErrorCode::kNotFound, ErrorCode::kIo, ErrorCode::kUnsupported}) {
    SCOPED_TRACE(base::errorCodeName(code));
    answers_.result.status = fail(code, "The device says no.");
    EXPECT_EQ(failure(), ErrorCode::kOpFailed);
    EXPECT_TRUE(compute().outputShapes.empty());
    answers_.createError = code;
    EXPECT_EQ(failure(), ErrorCode::kOpFailed);
    answers_.createError.reset();
  }
  for (const ErrorCode code :
       {ErrorCode::kUnavailableDevice, ErrorCode::kMissedDeadlineTransient,
        ErrorCode::kMissedDeadlinePersistent, ErrorCode::kResourceExhaustedTransient,
        ErrorCode::kResourceExhaustedPersistent, ErrorCode::kOutOfMemory, ErrorCode::kDeadObject}) {
    SCOPED_TRACE(base::errorCodeName(code));
    answers_.result.status = fail(code, "The device says why.");
    EXPECT_EQ(failure(), code);
    answers_.createError = code;
    EXPECT_EQ(failure(), code);
    answers_.createError.reset();
  }
  answers_.createError = ErrorCode::kOutputInsufficientSize;
  EXPECT_EQ(failure(), ErrorCode::kOpFailed);
  answers_.createError.reset();
  answers_.createsNothing = true;
  EXPECT_EQ(failure(), ErrorCode::kOpFailed);
}

TEST_F(DeviceModelTest, ImpossibleShapesAreFailedOperations) {
  const hal::OutputShapes right = answers_.result.outputShapes;
  EXPECT_EQ(failure({2, 4}), ErrorCode::kOpFailed);
  EXPECT_EQ(failure({}, {5}), ErrorCode::kOpFailed);
  EXPECT_EQ(failure({}, {0, 0}), ErrorCode::kOpFailed);
  for (const std::vector<hal::OutputShape>& wrong : {std::vector<hal::OutputShape>{},
                                                     {right[0]},
                                                     {right[0], right[1], right[1]},
                                                     {{{3, 3}, true}, right[1]},
                                                     {{{2}, true}, right[1]},
                                                     {{{}, true}, right[1]},
                                                     {{{2, 3}, false}, right[1]}}) {
    answers_.result.status = {};
    answers_.result.outputShapes = wrong;
    EXPECT_EQ(failure(), ErrorCode::kOpFailed);
  }
  // The device reports a small buffer, but every output is sufficient.
  answers_.result.status = fail(ErrorCode::kOutputInsufficientSize, "An output is too small.");
  answers_.result.outputShapes = right;
  EXPECT_EQ(failure(), ErrorCode::kOpFailed);
}

}  // namespace
}  // namespace hearth::runtime
