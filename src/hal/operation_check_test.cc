// SPDX-License-Identifier: Apache-2.0
#include "hal/operation_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hal/cts/model_builder.h"

namespace hearth::hal {
namespace {

using graph::OperandType;
using graph::OperationType;

// An IF whose second branch is an addition, of one operand where it is wrong.
graph::Model conditional(bool isRight) {
  cts::ModelBuilder builder;
  uint32_t branches[2];
  for (uint32_t& branch : branches) {
    branch = builder.beginSubgraph();
    const uint32_t x = builder.input(OperandType::kTensorFloat32, {2});
    std::vector<uint32_t> inputs = {x, x, builder.scalar(0)};
    if (!isRight && &branch == &branches[1]) inputs.resize(1);
    builder.operation(OperationType::kAdd, inputs,
                      {builder.output(OperandType::kTensorFloat32, {2})});
  }
  builder.returnToMain();
  const uint32_t condition = builder.input(OperandType::kTensorBool8, {1});
  const uint32_t x = builder.input(OperandType::kTensorFloat32, {2});
  builder.operation(
      OperationType::kIf,
      {condition, builder.subgraphOperand(branches[0]), builder.subgraphOperand(branches[1]), x},
      {builder.output(OperandType::kTensorFloat32, {2})});
  return builder.model();
}

TEST(OperationCheckTest, AnOperationIsSupportedWithTheSubgraphsThatItRefersTo) {
  const auto right = checkOperations(conditional(true));
  ASSERT_EQ(right.size(), 1u);
  EXPECT_TRUE(right[0].supported) << right[0].reason;
  const auto wrong = checkOperations(conditional(false));
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_FALSE(wrong[0].supported);
  EXPECT_THAT(wrong[0].reason, testing::HasSubstr("ADD"));
}

}  // namespace
}  // namespace hearth::hal
