// SPDX-License-Identifier: Apache-2.0
// Imports the shared models through the whole front end.
#include "frontends/tflite/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "ops/operation.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;
using graph::OperationType;
using testing::HasSubstr;

class SharedModel : public testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("HEARTH_TEST_DATA");
    if (folder == nullptr) GTEST_SKIP() << "HEARTH_TEST_DATA is not set";
    folder_ = std::string(folder) + "/data/models/";
  }

  std::shared_ptr<ModelFile> open(const std::string& name) {
    auto file = ModelFile::open(folder_ + name + ".tflite");
    if (!file) ADD_FAILURE() << file.error().toString();
    return file ? *file : nullptr;
  }

  ImportedGraph import(const std::string& name) {
    const auto file = open(name);
    if (file == nullptr) return {};
    auto imported = file->importSignature("");
    if (!imported) {
      ADD_FAILURE() << imported.error().toString();
      return {};
    }
    return std::move(*imported);
  }

  std::string folder_;
};

std::map<OperationType, int> countOperations(const ImportedGraph& imported) {
  std::map<OperationType, int> counts;
  for (const graph::Operation& operation : imported.model->main().operations)
    ++counts[operation.type];
  return counts;
}

// Expects every constant that is as large as weights to refer to the mapped file.
void expectWeightsInFile(const ImportedGraph& imported) {
  for (const graph::Operand& operand : imported.model->main().operands) {
    if (operand.lifetime != graph::Lifetime::kConstantCopy) continue;
    EXPECT_LE(operand.location.length, 32u) << graph::describe(operand);
  }
}

using Counts = std::map<OperationType, int>;

TEST_F(SharedModel, MobilenetV1Quantised) {
  for (const char* name : {"mobilenet_v1_0.25_128_quant", "mobilenet_v1_0.75_192_quant"}) {
    const ImportedGraph imported = import(name);
    ASSERT_NE(imported.model, nullptr);
    EXPECT_EQ(countOperations(imported), (Counts{{OperationType::kConv2d, 15},
                                                 {OperationType::kDepthwiseConv2d, 13},
                                                 {OperationType::kAveragePool2d, 1},
                                                 {OperationType::kReshape, 1},
                                                 {OperationType::kSoftmax, 1}}));
    expectWeightsInFile(imported);
    ASSERT_EQ(imported.inputs.size(), 1u);
    EXPECT_EQ(imported.inputs[0].name, "input");
    EXPECT_EQ(imported.inputs[0].type, OperandType::kTensorQuant8Asymm);
    EXPECT_EQ(imported.inputs[0].scale, 0.0078125f);
    EXPECT_EQ(imported.inputs[0].zeroPoint, 128);
    EXPECT_EQ(imported.inputs[0].tfliteType, "UINT8");
    ASSERT_EQ(imported.outputs.size(), 1u);
    EXPECT_EQ(imported.outputs[0].name, "MobilenetV1/Predictions/Reshape_1");
    EXPECT_EQ(imported.outputs[0].dimensions, (graph::Dimensions{1, 1001}));
    EXPECT_TRUE(imported.states.empty());
  }
}

TEST_F(SharedModel, ConvolutionArguments) {
  const ImportedGraph imported = import("mobilenet_v1_0.25_128_quant");
  ASSERT_NE(imported.model, nullptr);
  const graph::Subgraph& main = imported.model->main();
  const graph::Operation& first = main.operations[0];
  ASSERT_EQ(first.type, OperationType::kConv2d);
  ASSERT_EQ(first.inputs.size(), 7u);
  const auto scalar = [&](size_t i) {
    int32_t value;
    std::memcpy(&value, imported.model->constantData(main.operands[first.inputs[i]]), 4);
    return value;
  };
  EXPECT_EQ(scalar(3), 1);  // SAME
  EXPECT_EQ(scalar(4), 2);
  EXPECT_EQ(scalar(5), 2);
  EXPECT_EQ(scalar(6), 3);  // RELU6
  const graph::Operand& filter = main.operands[first.inputs[1]];
  EXPECT_EQ(filter.lifetime, graph::Lifetime::kConstantReference);
  EXPECT_EQ(filter.dimensions, (graph::Dimensions{8, 3, 3, 3}));
  const graph::Operand& bias = main.operands[first.inputs[2]];
  EXPECT_EQ(bias.type, OperandType::kTensorInt32);
  EXPECT_EQ(bias.scale, main.operands[first.inputs[0]].scale * filter.scale);
}

TEST_F(SharedModel, MobilenetV2PerChannel) {
  const ImportedGraph imported = import("mobilenet_v2_quantized_1x3x224x224");
  ASSERT_NE(imported.model, nullptr);
  EXPECT_EQ(countOperations(imported), (Counts{{OperationType::kTranspose, 1},
                                               {OperationType::kPad, 18},
                                               {OperationType::kConv2d, 35},
                                               {OperationType::kDepthwiseConv2d, 17},
                                               {OperationType::kAdd, 10},
                                               {OperationType::kMean, 1},
                                               {OperationType::kReshape, 1},
                                               {OperationType::kFullyConnected, 1}}));
  expectWeightsInFile(imported);
  EXPECT_EQ(imported.inputs[0].dimensions, (graph::Dimensions{1, 3, 224, 224}));
  EXPECT_EQ(imported.inputs[0].type, OperandType::kTensorQuant8AsymmSigned);
}

TEST_F(SharedModel, Deeplab) {
  const ImportedGraph imported = import("deeplabv3_mnv2_pascal_quant");
  ASSERT_NE(imported.model, nullptr);
  EXPECT_EQ(countOperations(imported), (Counts{{OperationType::kConv2d, 38},
                                               {OperationType::kDepthwiseConv2d, 17},
                                               {OperationType::kAdd, 10},
                                               {OperationType::kAveragePool2d, 1},
                                               {OperationType::kResizeBilinear, 3},
                                               {OperationType::kQuantize, 1},
                                               {OperationType::kConcatenation, 1},
                                               {OperationType::kArgmax64, 1}}));
  EXPECT_EQ(imported.outputs[0].type, OperandType::kTensorInt64);
  EXPECT_EQ(imported.outputs[0].dimensions, (graph::Dimensions{1, 513, 513}));
}

// LiteRT refuses this file because one-dimensional tensors name dimension 3.
TEST_F(SharedModel, PersonDetect) {
  const ImportedGraph imported = import("person_detect");
  ASSERT_NE(imported.model, nullptr);
  EXPECT_EQ(countOperations(imported), (Counts{{OperationType::kConv2d, 14},
                                               {OperationType::kDepthwiseConv2d, 14},
                                               {OperationType::kAveragePool2d, 1},
                                               {OperationType::kReshape, 1},
                                               {OperationType::kSoftmax, 1}}));
}

TEST_F(SharedModel, MicroSpeech) {
  const ImportedGraph imported = import("micro_speech_quantized");
  ASSERT_NE(imported.model, nullptr);
  EXPECT_EQ(countOperations(imported), (Counts{{OperationType::kReshape, 1},
                                               {OperationType::kDepthwiseConv2d, 1},
                                               {OperationType::kFullyConnected, 1},
                                               {OperationType::kSoftmax, 1}}));
}

TEST_F(SharedModel, SplitConcatKeepsTheOrderOfArguments) {
  const ImportedGraph imported = import("split_concat");
  ASSERT_NE(imported.model, nullptr);
  EXPECT_EQ(countOperations(imported),
            (Counts{{OperationType::kConcatenation, 2}, {OperationType::kSplit, 1}}));
  std::vector<std::string> names;
  for (const TensorInfo& info : imported.inputs) names.push_back(info.name);
  for (const TensorInfo& info : imported.outputs) names.push_back(info.name);
  EXPECT_THAT(names, testing::ElementsAre("input1", "inputs/rnn1", "inputs/rnn2", "concat/split0",
                                          "concat/split2", "concat/split4", "outputs/rnn1",
                                          "outputs/rnn2"));
}

TEST_F(SharedModel, VariablesBecomeStates) {
  const ImportedGraph imported = import("dtln_noise_suppression");
  ASSERT_NE(imported.model, nullptr);
  EXPECT_EQ(countOperations(imported), (Counts{{OperationType::kQuantizedSequenceLstm, 2},
                                               {OperationType::kFullyConnected, 1},
                                               {OperationType::kLogistic, 1}}));
  const graph::Subgraph& main = imported.model->main();
  ASSERT_EQ(imported.states.size(), 4u);
  EXPECT_EQ(imported.inputs.size(), 1u);
  ASSERT_EQ(main.inputs.size(), 5u);
  ASSERT_EQ(main.outputs.size(), 5u);
  for (size_t i = 0; i < 4; ++i) {
    const graph::StatePair& state = imported.states[i];
    EXPECT_EQ(state.input, i + 1);
    EXPECT_EQ(state.output, i + 1);
    const graph::Operand& input = main.operands[main.inputs[state.input]];
    const graph::Operand& output = main.operands[main.outputs[state.output]];
    EXPECT_EQ(input.type, output.type);
    EXPECT_EQ(input.dimensions, output.dimensions);
    const bool isCell = input.type == OperandType::kTensorQuant16Symm;
    EXPECT_EQ(isCell, i % 2 == 1);
    EXPECT_EQ(state.initialValue.size(), isCell ? 256u : 128u);
  }
  // The output state of the second layer has the zero point -4.
  EXPECT_EQ(imported.states[2].initialValue[0], static_cast<uint8_t>(-4));
  EXPECT_EQ(imported.signatureKey, "serving_default");
}

TEST_F(SharedModel, KerasLstm) {
  const ImportedGraph imported = import("keras_lstm_mnist_ptq");
  ASSERT_NE(imported.model, nullptr);
  EXPECT_EQ(countOperations(imported), (Counts{{OperationType::kQuantize, 2},
                                               {OperationType::kQuantizedSequenceLstm, 1},
                                               {OperationType::kReshape, 1},
                                               {OperationType::kFullyConnected, 1},
                                               {OperationType::kSoftmax, 1}}));
  EXPECT_EQ(imported.states.size(), 2u);
  // The signature's own name, not the tensor's.
  EXPECT_EQ(imported.inputs[0].name, "x");
  EXPECT_EQ(imported.inputs[0].tensorName, "serving_default_x:0");
}

TEST_F(SharedModel, CustomOperationsAreNamed) {
  const auto file = open("audio_preprocessor_int8");
  ASSERT_NE(file, nullptr);
  const auto imported = file->importSignature("");
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(imported.error().message(),
            "Operation 0 of subgraph 0 is the custom operation \"SignalWindow\" version 1, which "
            "is not known; a program can bring its operator along with "
            "hearth_custom_operator_register, the command with --custom-operators, "
            "and a device that computes it names it in its manifest.");
  const ModelSummary summary = file->summary();
  ASSERT_EQ(summary.subgraphs.size(), 1u);
  size_t unsupported = 0;
  for (const OperationSummary& operation : summary.subgraphs[0].operations) {
    if (operation.isSupported) continue;
    ++unsupported;
    EXPECT_TRUE(operation.isCustom) << operation.name;
  }
  EXPECT_EQ(unsupported, 9u);
}

TEST_F(SharedModel, Summary) {
  const auto file = open("mobilenet_v1_0.25_128_quant");
  ASSERT_NE(file, nullptr);
  const ModelSummary summary = file->summary();
  EXPECT_EQ(summary.version, 3u);
  EXPECT_EQ(summary.fileBytes, 525598u);
  EXPECT_GT(summary.weightBytes, 470000u);
  EXPECT_LT(summary.weightBytes, summary.fileBytes);
  ASSERT_EQ(summary.subgraphs.size(), 1u);
  EXPECT_EQ(summary.subgraphs[0].operationCount, 31u);
  EXPECT_EQ(summary.subgraphs[0].tensors.size(), 89u);
  const auto& operations = summary.subgraphs[0].operations;
  EXPECT_THAT(operations, testing::Contains(testing::Field(&OperationSummary::name, "CONV_2D")));
}

TEST_F(SharedModel, UnknownSignature) {
  const auto file = open("dtln_noise_suppression");
  ASSERT_NE(file, nullptr);
  EXPECT_THAT(file->signatureKeys(), testing::ElementsAre("serving_default"));
  const auto imported = file->importSignature("decode");
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace hearth::tflite
