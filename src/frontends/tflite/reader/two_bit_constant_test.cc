// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/reader/two_bit_constant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "frontends/tflite/testing/import_testing.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;

TEST(TwoBitConstant, TheFirstElementIsInTheLowestBits) {
  const std::vector<uint8_t> packed = {0b11100100, 0b00000010};
  EXPECT_THAT(widenTwoBits(packed, 5), ElementsAre(0, 1, 0xFE, 0xFF, 0xFE));
  EXPECT_EQ(twoBitSize(0), 0u);
  EXPECT_EQ(twoBitSize(4), 1u);
  EXPECT_EQ(twoBitSize(5), 2u);
  EXPECT_EQ(twoBitSize(UINT64_MAX), UINT64_MAX / 4 + 1);
}

// A fully connected layer of two outputs over three inputs.
ModelWriter layer(std::vector<uint8_t> weights, std::vector<float> scales) {
  FloatModel model({{1, 3}}, {{1, 2}});
  const int32_t filter = model.addConstantBytes(TensorType::INT2, {2, 3}, std::move(weights), 1.0f);
  model.tensor(filter).quantization->zero_point.assign(scales.size(), 0);
  model.tensor(filter).quantization->scale = std::move(scales);
  model.addOperator(BuiltinOperator::FULLY_CONNECTED, {0, filter, -1}, {1},
                    schema::FullyConnectedOptionsT());
  return model;
}

TEST(TwoBitConstant, BecomesWeightsOfEightBits) {
  const ImportedGraph imported = import(layer({0b11100100, 0b0110}, {0.5f, 0.25f}));
  const graph::Subgraph& main = imported.model->main();
  const graph::Operand& weights = main.operands[main.operations.at(0).inputs[1]];
  EXPECT_EQ(weights.type, OperandType::kTensorQuant8SymmPerChannel);
  EXPECT_EQ(weights.perChannel.scales.size(), 2u);
  const std::vector<int> expected = {0, 1, -2, -1, -2, 1};
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(valueOf<int8_t>(*imported.model, weights, i), expected[i]) << i;

  const ImportedGraph single = import(layer({0, 0}, {0.5f}));
  const graph::Subgraph& graph = single.model->main();
  EXPECT_EQ(graph.operands[graph.operations.at(0).inputs[1]].type,
            OperandType::kTensorQuant8AsymmSigned);
}

TEST(TwoBitConstant, WrongSizesAndOtherTensorsAreErrors) {
  EXPECT_THAT(errorOf(layer({0}, {0.5f})), HasSubstr("needs 2 bytes, its buffer has 1"));
  EXPECT_THAT(errorOf(layer({0, 0, 0}, {0.5f})), HasSubstr("needs 2 bytes, its buffer has 3"));
  ModelWriter model;
  model.addTensor(TensorType::INT2, {4}, 0.5f);
  model.addTensor(TensorType::FLOAT32, {4});
  model.addOperator(BuiltinOperator::DEQUANTIZE, {0}, {1});
  model.setArguments({0}, {1});
  EXPECT_THAT(errorOf(model), HasSubstr("The tensor \"t0\" of type INT2 is no dense constant"));
}

}  // namespace
}  // namespace hearth::tflite
