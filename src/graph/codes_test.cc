// SPDX-License-Identifier: Apache-2.0
#include "graph/codes.h"

#include <gtest/gtest.h>

#include <set>

namespace hearth::graph {
namespace {

TEST(Codes, AllNnapiOperationsAndTypesAreThere) {
  size_t nnapi = 0;
  for (const OperationTypeInfo& info : operationTypes())
    if (info.featureLevel != 0) {
      EXPECT_EQ(static_cast<size_t>(info.type), nnapi);
      ++nnapi;
    }
  EXPECT_EQ(nnapi, 106u);
  nnapi = 0;
  for (const OperandTypeInfo& info : operandTypes())
    if (info.featureLevel != 0) {
      EXPECT_EQ(static_cast<size_t>(info.type), nnapi);
      ++nnapi;
    }
  EXPECT_EQ(nnapi, 16u);
}

// Checks some of the NDK's documented values and levels.
TEST(Codes, ValuesAndLevelsAreNnapis) {
  EXPECT_EQ(static_cast<int32_t>(OperationType::kConv2d), 3);
  EXPECT_EQ(static_cast<int32_t>(OperationType::kUnidirectionalSequenceLstm), 92);
  EXPECT_EQ(findOperationType(OperationType::kDiv)->featureLevel, 2);
  EXPECT_EQ(findOperationType(OperationType::kResizeNearestNeighbor)->featureLevel, 3);
  EXPECT_EQ(findOperationType(OperationType::kQuantizedLstm)->featureLevel, 4);
  EXPECT_EQ(findOperationType(OperationType::kPack)->featureLevel, 6);
  EXPECT_EQ(findOperationType(OperationType::kReverse)->featureLevel, 7);
  EXPECT_EQ(static_cast<int32_t>(OperandType::kTensorQuant8AsymmSigned), 14);
}

TEST(Codes, NamesAreUniqueAndUnknownCodesHaveOne) {
  std::set<std::string> names;
  for (const OperationTypeInfo& info : operationTypes())
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
  EXPECT_EQ(nameOf(static_cast<OperationType>(9999)), "operation 9999");
  EXPECT_EQ(findOperationType(static_cast<OperationType>(106)), nullptr);
  EXPECT_EQ(elementSize(static_cast<OperandType>(-1)), 0u);
}

TEST(Codes, TablesAreSorted) {
  for (size_t i = 1; i < operationTypes().size(); ++i)
    EXPECT_LT(operationTypes()[i - 1].type, operationTypes()[i].type);
  for (size_t i = 1; i < operandTypes().size(); ++i)
    EXPECT_LT(operandTypes()[i - 1].type, operandTypes()[i].type);
}

}  // namespace
}  // namespace hearth::graph
