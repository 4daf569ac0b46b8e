// SPDX-License-Identifier: Apache-2.0
#include "ipc/output_bytes.h"

#include <gtest/gtest.h>

namespace hearth::ipc {
namespace {

graph::Operand operandOf(graph::OperandType type, graph::Dimensions dimensions) {
  graph::Operand operand;
  operand.type = type;
  operand.dimensions = std::move(dimensions);
  return operand;
}

TEST(OutputBytesTest, TheShapeDecides) {
  const auto floats = operandOf(graph::OperandType::kTensorFloat32, {0, 3});
  EXPECT_EQ(outputBytes(floats, {2, 3}), 24u);
  EXPECT_EQ(outputBytes(floats, {0, 3}), 0u);
  EXPECT_EQ(outputBytes(floats, {}), std::nullopt);
  EXPECT_EQ(outputBytes(operandOf(graph::OperandType::kTensorFloat32, {2, 3}), {}), 24u);
  EXPECT_EQ(outputBytes(operandOf(graph::OperandType::kTensorFloat32, {}), {}), std::nullopt);
  EXPECT_EQ(outputBytes(operandOf(graph::OperandType::kFloat32, {}), {}), 4u);
  EXPECT_EQ(outputBytes(floats, {0xffffffff, 0xffffffff}), std::nullopt);
}

}  // namespace
}  // namespace hearth::ipc
