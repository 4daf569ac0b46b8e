// SPDX-License-Identifier: Apache-2.0
#include "ops/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "ops/testing/operation_builder.h"

namespace hearth::ops {
namespace {

using graph::Lifetime;
using testing::HasSubstr;

class SignatureTest : public testing::Test {
 protected:
  uint32_t add(OperandType type, Dimensions dimensions = {}, float scale = 0,
               int32_t zeroPoint = 0) {
    subgraph.operands.push_back(
        OperationBuilder::tensor(type, std::move(dimensions), scale, zeroPoint));
    return static_cast<uint32_t>(subgraph.operands.size() - 1);
  }
  graph::Model model;
  graph::Subgraph subgraph;
  graph::Operation operation{OperationType::kAdd, {}, {}, "sum"};
};

TEST(TypeSetTest, ContainsTheTypesItWasBuiltFrom) {
  constexpr TypeSet set = kQuant8Tensors | OperandType::kTensorInt64;
  EXPECT_TRUE(set.contains(OperandType::kTensorQuant8Asymm));
  EXPECT_TRUE(set.contains(OperandType::kTensorInt64));
  EXPECT_FALSE(set.contains(OperandType::kTensorFloat32));
  EXPECT_FALSE(set.contains(static_cast<OperandType>(12345)));
  EXPECT_FALSE(set.contains(static_cast<OperandType>(-1)));
  EXPECT_EQ(kFloatTensors.describe(), "TENSOR_{FLOAT32,FLOAT16}");
  EXPECT_EQ((OperandType::kFloat32 | TypeSet(OperandType::kTensorInt32)).describe(),
            "FLOAT32 or TENSOR_INT32");
}

TEST_F(SignatureTest, CountsAndTypes) {
  operation.inputs = {add(OperandType::kTensorFloat32, {2}), add(OperandType::kInt32)};
  operation.outputs = {add(OperandType::kTensorFloat32)};
  const Signature signature(model, subgraph, operation);
  EXPECT_TRUE(signature.counts(2, 1));
  EXPECT_TRUE(signature.counts(1, 3, 1));
  const Status few = signature.counts(3, 1);
  ASSERT_FALSE(few);
  EXPECT_EQ(few.error().message(), "ADD \"sum\" has 2 inputs, it must have 3.");
  EXPECT_FALSE(signature.counts(2, 2));
  EXPECT_TRUE(signature.inputType(0, kFloatTensors));
  EXPECT_FALSE(signature.inputType(1, kFloatTensors));
  EXPECT_FALSE(signature.inputTypeLike(1, 0));
  EXPECT_FALSE(signature.inputType(2, kFloatTensors));
  EXPECT_TRUE(signature.optionalInputType(2, kFloatTensors));
  EXPECT_TRUE(signature.outputTypeLike(0, 0));
  EXPECT_THAT(signature.outputType(0, kQuant8Tensors).error().message(),
              HasSubstr("TENSOR_{QUANT8_ASYMM,QUANT8_ASYMM_SIGNED}"));
  EXPECT_FALSE(signature.floatScalar(1, 0));
}

TEST_F(SignatureTest, OmittedInputsKeepTheirType) {
  operation.inputs = {add(OperandType::kTensorFloat32)};
  subgraph.operands[0].lifetime = Lifetime::kNoValue;
  const Signature signature(model, subgraph, operation);
  EXPECT_FALSE(signature.hasInput(0));
  EXPECT_TRUE(signature.isInputOfType(0, kFloatTensors));
  EXPECT_FALSE(signature.inputType(0, kFloatTensors));
  EXPECT_TRUE(signature.optionalInputType(0, kFloatTensors));
}

TEST_F(SignatureTest, UnknownRankPasses) {
  operation.inputs = {add(OperandType::kTensorFloat32), add(OperandType::kTensorFloat32, {1, 0})};
  const Signature signature(model, subgraph, operation);
  EXPECT_TRUE(signature.inputRank(0, 4, 4));
  EXPECT_TRUE(signature.inputRank(1, 1, 2));
  EXPECT_FALSE(signature.inputRank(1, 4, 4));
  EXPECT_TRUE(signature.inputTensor(1, kFloatTensors, 1, 2));
  EXPECT_FALSE(signature.inputTensor(1, kFloatTensors, 3, 4));
  EXPECT_FALSE(signature.inputTensor(1, kQuant8Tensors, 1, 2));
}

TEST_F(SignatureTest, Quantization) {
  operation.inputs = {add(OperandType::kTensorQuant8Asymm, {1}, 0.5f, 3),
                      add(OperandType::kTensorQuant8Asymm, {1}, 0.5000001f, 3),
                      add(OperandType::kTensorQuant8Asymm, {1}, 0.5f, 4)};
  operation.outputs = {add(OperandType::kTensorQuant8Asymm, {1}, 0.25f, 3)};
  const Signature signature(model, subgraph, operation);
  EXPECT_TRUE(signature.sameQuantization(0, 1));
  EXPECT_FALSE(signature.sameQuantization(0, 2));
  EXPECT_FALSE(signature.outputQuantizationLike(0, 0));
  EXPECT_TRUE(signature.outputQuantization(0, 0.25f, 3));
  EXPECT_FALSE(signature.outputQuantization(0, 0.25f, 0));
}

TEST_F(SignatureTest, ResolveAxis) {
  OperationContext context;
  context.operation = &operation;
  EXPECT_EQ(*resolveAxis(context, -1, 4), 3u);
  EXPECT_EQ(*resolveAxis(context, 0, 4), 0u);
  EXPECT_FALSE(resolveAxis(context, 4, 4));
  EXPECT_FALSE(resolveAxis(context, -5, 4));
  EXPECT_FALSE(resolveAxis(context, 0, 0));
}

TEST_F(SignatureTest, RequireArgumentsTellsUnknownShapesApart) {
  operation.inputs = {add(OperandType::kTensorFloat32, {2, 0})};
  operation.outputs = {add(OperandType::kTensorFloat32)};
  subgraph.operations = {operation};
  graph::Model model;
  model.subgraphs = {subgraph};
  OperationContext context = makeContext(model, model.main(), operation);
  const Status unknown = requireArguments(context, 1, 1);
  ASSERT_FALSE(unknown);
  EXPECT_TRUE(isNeedsRuntimeValue(unknown.error()));
  const Status missing = requireArguments(context, 2, 1);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::kBadData);
  context.inputs[0].hasKnownShape = true;
  EXPECT_TRUE(requireArguments(context, 1, 1));
  EXPECT_FALSE(requireRank(context, 0, 4, 4));
}

}  // namespace
}  // namespace hearth::ops
