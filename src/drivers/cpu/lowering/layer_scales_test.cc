// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/layer_scales.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "drivers/cpu/cpu_device.h"
#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

using ::testing::ElementsAre;

graph::Operand operandOf(OperandType type, float scale) {
  graph::Operand operand;
  operand.type = type;
  operand.scale = scale;
  return operand;
}

TEST(LayerScalesTest, FactorsThatFitAreLeftAlone) {
  const LayerScales scales =
      LayerScales::of(operandOf(kInt8, 0.5f), operandOf(kInt8, 0.25f), operandOf(kInt8, 2.0f));
  EXPECT_EQ(scales.input, 0.5f);
  EXPECT_EQ(scales.filter, 0.25f);
  EXPECT_EQ(scales.output, 2.0f);
}

TEST(LayerScalesTest, LowerOnesAreRaised) {
  graph::Operand filter = operandOf(OperandType::kTensorQuant8SymmPerChannel, 0.0f);
  filter.perChannel.scales = {0.25f, 1e-23f, 1e-42f, 0x1p-30f};
  const LayerScales scales =
      LayerScales::of(operandOf(kInt8, 0.5f), filter, operandOf(kInt8, 2.0f));
  EXPECT_EQ(scales.input, 1.0f);
  EXPECT_EQ(scales.output, 1.0f);
  EXPECT_THAT(std::vector<float>(scales.channels.begin(), scales.channels.end()),
              ElementsAre(0x1p-4f, 0x1p-32f, 0x1p-32f, 0x1p-32f));
  // The product of the first two is no normal number.
  EXPECT_FLOAT_EQ(
      LayerScales::of(operandOf(kInt8, 1e-30f), operandOf(kInt8, 1e-10f), operandOf(kInt8, 1e-38f))
          .filter,
      0.01f);
}

TEST(LayerScalesTest, HighOnesAreFound) {
  graph::Operand filter = operandOf(OperandType::kTensorQuant8SymmPerChannel, 0.0f);
  for (const bool isLow : {true, false}) {
    filter.perChannel.scales = {0.25f, isLow ? 1023.0f : 1024.0f, 1e-23f};
    EXPECT_EQ(LayerScales::areLow(operandOf(kInt8, 0.5f), filter, operandOf(kInt8, 2.0f)), isLow);
  }
  EXPECT_TRUE(LayerScales::areLow(operandOf(kFloat, 0.0f), operandOf(kFloat, 0.0f),
                                  operandOf(kFloat, 0.0f)));
}

// The scales of filters of which training has switched off a half.
std::vector<float> extremeScales(size_t count) {
  std::vector<float> scales = risingScales(count, 0.0001f);
  for (size_t i = 0; i < count; ++i) {
    if (i % 4 == 1) scales[i] = 1e-10f / static_cast<float>(i);
    if (i % 4 == 2) scales[i] = 1e-23f;
  }
  return scales;
}

enum class Kind { kConvolution, kWindows, kDepthwise, kTransposed, kFullyConnected };

struct ExtremeScalesCase {
  Kind kind;
  OperandType type;
  bool isPerChannel;
};

class ExtremeScalesTest : public ::testing::TestWithParam<ExtremeScalesCase> {
 protected:
  // The outputs of the layer on hearth-cpu and of the reference kernels; `scale` is that of a
  // filter without scales by channel.
  static void compare(float scale) {
    const ExtremeScalesCase& c = GetParam();
    constexpr uint32_t kInputs = 40;
    constexpr uint32_t kOutputs = 40;
    const bool isUint8 = c.type == kUint8;
    ModelBuilder builder;
    const bool isFlat = c.kind == Kind::kFullyConnected;
    const Dimensions shape = isFlat ? Dimensions{9, kInputs} : Dimensions{1, 6, 7, kInputs};
    const Dimensions result = isFlat                        ? Dimensions{9, kOutputs}
                              : c.kind == Kind::kTransposed ? Dimensions{1, 12, 14, kOutputs}
                                                            : Dimensions{1, 6, 7, kOutputs};
    const uint32_t side = c.kind == Kind::kConvolution ? 1 : 3;
    const bool isDepthwise = c.kind == Kind::kDepthwise;
    const Dimensions weights = isFlat        ? Dimensions{kOutputs, kInputs}
                               : isDepthwise ? Dimensions{1, side, side, kOutputs}
                                             : Dimensions{kOutputs, side, side, kInputs};
    const uint32_t input = builder.input(c.type, shape, 0.03f, isUint8 ? 120 : 4);
    const Bytes values = randomBytes(countOf(weights), 2);
    const uint32_t filter =
        c.isPerChannel ? builder.constant(OperandType::kTensorQuant8SymmPerChannel, weights, values)
                       : builder.constant(c.type, weights, values, scale, isUint8 ? 130 : 0);
    // Converters limit the biases of such channels to the greatest integers.
    std::vector<int32_t> biases(kOutputs, 300);
    biases[1] = INT32_MAX - 40 * 9 * 128 * 255;
    biases[2] = INT32_MIN + 40 * 9 * 128 * 255;
    const uint32_t bias = builder.constant(OperandType::kTensorInt32, {kOutputs}, biases,
                                           c.isPerChannel ? 0.0f : 0.03f * scale);
    std::vector<uint32_t> inputs = {input, filter, bias};
    const uint32_t one = builder.scalar(1);
    const uint32_t none = builder.scalar(0);
    switch (c.kind) {
      case Kind::kFullyConnected:
        inputs.push_back(none);
        break;
      case Kind::kTransposed:
        inputs.push_back(builder.constant(OperandType::kTensorInt32, {4},
                                          std::vector<int32_t>{1, 12, 14, kOutputs}));
        for (const uint32_t number :
             {one, builder.scalar(2), builder.scalar(2), none, builder.scalar(false)})
          inputs.push_back(number);
        break;
      case Kind::kDepthwise:
        for (const uint32_t number : {one, one, one, one, none}) inputs.push_back(number);
        break;
      default:
        for (const uint32_t number : {one, one, one, none}) inputs.push_back(number);
    }
    const OperationType types[] = {OperationType::kConv2d, OperationType::kConv2d,
                                   OperationType::kDepthwiseConv2d, OperationType::kTransposeConv2d,
                                   OperationType::kFullyConnected};
    builder.operation(types[static_cast<size_t>(c.kind)], inputs,
                      {builder.output(c.type, result, 0.5f, isUint8 ? 7 : -5)});
    graph::Model model = builder.model();
    if (c.isPerChannel) {
      model.main().operands[filter].perChannel.channelDim = isDepthwise ? 3 : 0;
      model.main().operands[filter].perChannel.scales = extremeScales(kOutputs);
    }
    const auto support = createCpuDevice()->explainOperations(model);
    ASSERT_TRUE(support) << support.error().toString();
    EXPECT_NE(support->back().kernel, "reference");
    const Bytes data = randomBytes(countOf(shape), 1);
    EXPECT_EQ(differenceFromReference(model, {data}, nullptr, 0.0f), "");
    const auto both = runBoth(model, {data});
    ASSERT_TRUE(both) << both.error().toString();
    const std::vector<float> scales =
        c.isPerChannel ? extremeScales(kOutputs) : std::vector<float>(kOutputs, scale);
    for (size_t i = 0; i < both->made[0].size(); ++i) {
      if (scales[i % kOutputs] < 1e-9f) {
        ASSERT_EQ(both->made[0][i], both->expected[0][i]) << i;
      }
    }
  }
};

TEST_P(ExtremeScalesTest, ResultsAreThoseOfTheReference) {
  if (GetParam().isPerChannel) return compare(0.0f);
  for (const float scale : {1e-10f, 1e-23f, 1e-36f, 0.02f}) compare(scale);
}

INSTANTIATE_TEST_SUITE_P(Layers, ExtremeScalesTest,
                         ::testing::Values(ExtremeScalesCase{Kind::kConvolution, kInt8, true},
                                           ExtremeScalesCase{Kind::kConvolution, kInt8, false},
                                           ExtremeScalesCase{Kind::kConvolution, kUint8, false},
                                           ExtremeScalesCase{Kind::kWindows, kInt8, true},
                                           ExtremeScalesCase{Kind::kWindows, kUint8, false},
                                           ExtremeScalesCase{Kind::kDepthwise, kInt8, true},
                                           ExtremeScalesCase{Kind::kDepthwise, kUint8, false},
                                           ExtremeScalesCase{Kind::kTransposed, kInt8, true},
                                           ExtremeScalesCase{Kind::kTransposed, kUint8, false},
                                           ExtremeScalesCase{Kind::kFullyConnected, kInt8, false},
                                           ExtremeScalesCase{Kind::kFullyConnected, kUint8,
                                                             false}));

}  // namespace
}  // namespace hearth::cpu
