// SPDX-License-Identifier: Apache-2.0
// Models and arguments that request too much: too many elements, or subgraphs nested too deeply.
// Each must be refused with an error message before anything is allocated.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "android/NeuralNetworks.h"
#include "frontends/tflite/testing/model_writer.h"
#include "hearth/hearth.h"

namespace hearth::faults {
namespace {

using tflite::ModelWriter;
namespace schema = tflite::schema;
using Shape = ModelWriter::Shape;

// Element counts of 2^32, 2^63, 2^64 (0 in 64 bits) and one more than that, and a size in bytes
// that overflows although the element count does not.
const std::vector<Shape> kOverflowing = {
    {65536, 65536, 65536, 65536},      {65536, 65536, 65536, 32768},
    {INT32_MAX, INT32_MAX, INT32_MAX}, {1 << 30, 1 << 30, 1 << 30, 1 << 30},
    {INT32_MAX, INT32_MAX, 4},         {641, 6700417, INT32_MAX, 4, 1},
    {2, 2, 2, 2, 2, 1 << 30, 1 << 30},
};

hearth_status statusOf(const std::vector<uint8_t>& bytes, std::string* message, bool runs = false) {
  hearth_error* error = nullptr;
  hearth_model* model = nullptr;
  hearth_status status = hearth_model_load_memory(bytes.data(), bytes.size(), &model, &error);
  hearth_compilation* compilation = nullptr;
  hearth_compile_options options = HEARTH_COMPILE_OPTIONS_INIT;
  options.cache = HEARTH_CACHE_OFF;
  // With this limit only sizes that overflow are refused.
  options.max_activation_bytes = UINT64_MAX;
  if (status == HEARTH_OK) status = hearth_compile(model, &options, &compilation, &error);
  // An inconsistent model may be refused when it is computed.
  hearth_execution* execution = nullptr;
  std::array<float, 64> input{};
  std::array<float, 64> output{};
  if (status == HEARTH_OK && runs) {
    status = hearth_execution_create(compilation, &execution, &error);
    if (status == HEARTH_OK)
      status = hearth_execution_set_input(execution, 0, input.data(), 16 * sizeof(float), nullptr,
                                          0, &error);
    if (status == HEARTH_OK)
      status = hearth_execution_set_output(execution, 0, output.data(), sizeof output, &error);
    if (status == HEARTH_OK) status = hearth_execution_run(execution, 0, &error);
  }
  hearth_execution_free(execution);
  if (error != nullptr) *message = hearth_error_message(error);
  hearth_error_free(error);
  hearth_compilation_free(compilation);
  hearth_model_free(model);
  return status;
}

TEST(OverflowTest, ATensorOfTooManyElementsIsRefused) {
  for (const Shape& shape : kOverflowing) {
    for (const bool isInput : {true, false}) {
      ModelWriter writer;
      const auto type = schema::TensorType::FLOAT32;
      const int32_t from = writer.addTensor(type, isInput ? shape : Shape{1});
      const int32_t to = writer.addTensor(type, isInput ? Shape{1} : shape);
      writer.addOperator(schema::BuiltinOperator::NEG, {from}, {to});
      writer.setArguments({from}, {to});
      std::string message;
      EXPECT_NE(statusOf(writer.write(), &message), HEARTH_OK);
      EXPECT_NE(message, "");
    }
  }
}

TEST(OverflowTest, AConstantOfTooManyElementsIsRefused) {
  for (const Shape& shape : kOverflowing) {
    ModelWriter writer;
    const auto type = schema::TensorType::FLOAT32;
    const int32_t from = writer.addTensor(type, {1});
    const int32_t constant = writer.addConstantBytes(type, shape, std::vector<uint8_t>(64));
    const int32_t to = writer.addTensor(type, {1});
    writer.addOperator(schema::BuiltinOperator::ADD, {from, constant}, {to}, schema::AddOptionsT());
    writer.setArguments({from}, {to});
    std::string message;
    EXPECT_NE(statusOf(writer.write(), &message), HEARTH_OK);
    EXPECT_NE(message, "");
  }
}

// Operations with small arguments whose result would be larger than any memory.
TEST(OverflowTest, AnInferredShapeOfTooManyElementsIsRefused) {
  const auto type = schema::TensorType::FLOAT32;
  const auto compile = [&](const char* name, const auto& add) {
    ModelWriter writer;
    const int32_t input = writer.addTensor(type, {2, 2, 2, 2});
    // The shape is known only from the operation.
    const int32_t output = writer.addTensor(type, {});
    writer.tensor(output).shape_signature = {-1, -1, -1, -1};
    writer.tensor(output).shape = {1, 1, 1, 1};
    add(&writer, input, output);
    writer.setArguments({input}, {output});
    std::string message;
    EXPECT_NE(statusOf(writer.write(), &message, true), HEARTH_OK) << name;
    EXPECT_NE(message, "") << name;
  };
  constexpr int32_t kMost = INT32_MAX;
  compile("TILE", [&](ModelWriter* writer, int32_t input, int32_t output) {
    writer->addOperator(schema::BuiltinOperator::TILE,
                        {input, writer->ints({kMost, kMost, kMost, kMost})}, {output});
  });
  compile("PAD", [&](ModelWriter* writer, int32_t input, int32_t output) {
    const int32_t pads =
        writer->addConstant<int32_t>(schema::TensorType::INT32, {4, 2},
                                     {kMost, kMost, kMost, kMost, kMost, kMost, kMost, kMost});
    writer->addOperator(schema::BuiltinOperator::PAD, {input, pads}, {output});
  });
  compile("BROADCAST_TO", [&](ModelWriter* writer, int32_t, int32_t output) {
    const int32_t one = writer->addConstant<float>(type, {1}, {1.0f});
    writer->addOperator(schema::BuiltinOperator::BROADCAST_TO,
                        {one, writer->ints({kMost, kMost, kMost, kMost})}, {output});
  });
  compile("FILL", [&](ModelWriter* writer, int32_t, int32_t output) {
    const int32_t one = writer->addConstant<float>(type, {}, {1.0f});
    writer->addOperator(schema::BuiltinOperator::FILL,
                        {writer->ints({kMost, kMost, kMost, kMost}), one}, {output});
  });
  compile("RESHAPE", [&](ModelWriter* writer, int32_t input, int32_t output) {
    writer->addOperator(schema::BuiltinOperator::RESHAPE,
                        {input, writer->ints({65536, 65536, 65536, 65536})}, {output});
  });
  compile("SPACE_TO_BATCH_ND", [&](ModelWriter* writer, int32_t input, int32_t output) {
    const int32_t pads = writer->addConstant<int32_t>(schema::TensorType::INT32, {2, 2},
                                                      {kMost - 1, kMost - 1, kMost - 1, kMost - 1});
    writer->addOperator(schema::BuiltinOperator::SPACE_TO_BATCH_ND,
                        {input, writer->ints({1, 1}), pads}, {output});
  });
  compile("RESIZE_BILINEAR", [&](ModelWriter* writer, int32_t input, int32_t output) {
    writer->addOperator(schema::BuiltinOperator::RESIZE_BILINEAR,
                        {input, writer->ints({kMost, kMost})}, {output},
                        schema::ResizeBilinearOptionsT());
  });
  compile("DEPTH_TO_SPACE", [&](ModelWriter* writer, int32_t input, int32_t output) {
    schema::DepthToSpaceOptionsT options;
    options.block_size = 65536;
    writer->addOperator(schema::BuiltinOperator::DEPTH_TO_SPACE, {input}, {output}, options);
  });
}

TEST(OverflowTest, AnInputOfTooManyElementsIsRefusedBeforeTheRun) {
  ModelWriter writer;
  const auto type = schema::TensorType::FLOAT32;
  const int32_t from = writer.addTensor(type, {1, 1, 1, 1});
  writer.tensor(from).shape_signature = {-1, -1, -1, -1};
  const int32_t to = writer.addTensor(type, {1, 1, 1, 1});
  writer.tensor(to).shape_signature = {-1, -1, -1, -1};
  writer.addOperator(schema::BuiltinOperator::NEG, {from}, {to});
  writer.setArguments({from}, {to});
  const std::vector<uint8_t> bytes = writer.write();
  hearth_model* model = nullptr;
  hearth_compilation* compilation = nullptr;
  hearth_execution* execution = nullptr;
  ASSERT_EQ(hearth_model_load_memory(bytes.data(), bytes.size(), &model, nullptr), HEARTH_OK);
  ASSERT_EQ(hearth_compile(model, nullptr, &compilation, nullptr), HEARTH_OK);
  ASSERT_EQ(hearth_execution_create(compilation, &execution, nullptr), HEARTH_OK);
  const std::array<float, 4> values{};
  const std::vector<std::vector<uint32_t>> shapes = {
      {65536, 65536, 65536, 65536},    // 2^64 elements
      {65536, 65536, 65536, 16384},    // 2^62 elements, 2^64 bytes
      {UINT32_MAX, UINT32_MAX, 1, 1},  // 2^64 - 2^33 + 1 elements
      {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX},
      {0, UINT32_MAX, UINT32_MAX, UINT32_MAX},
      {0, 0, 0, 0},
  };
  for (const std::vector<uint32_t>& shape : shapes)
    for (const size_t size : {size_t{0}, sizeof values})
      EXPECT_EQ(hearth_execution_set_input(execution, 0, values.data(), size, shape.data(),
                                           shape.size(), nullptr),
                HEARTH_BAD_DATA);
  hearth_execution_free(execution);
  hearth_compilation_free(compilation);
  hearth_model_free(model);
}

struct FreeModel {
  void operator()(ANeuralNetworksModel* model) const { ANeuralNetworksModel_free(model); }
};
using NnapiModel = std::unique_ptr<ANeuralNetworksModel, FreeModel>;

NnapiModel makeNnapiModel() {
  ANeuralNetworksModel* model = nullptr;
  EXPECT_EQ(ANeuralNetworksModel_create(&model), ANEURALNETWORKS_NO_ERROR);
  return NnapiModel(model);
}

TEST(OverflowTest, AnNnapiOperandOfTooManyElementsIsRefused) {
  const std::array<uint32_t, 4> shape{65536, 65536, 65536, 65536};
  const ANeuralNetworksOperandType type{ANEURALNETWORKS_TENSOR_FLOAT32, 4, shape.data(), 0, 0};
  const float value = 0;
  const NnapiModel model = makeNnapiModel();
  int code = ANeuralNetworksModel_addOperand(model.get(), &type);
  if (code == ANEURALNETWORKS_NO_ERROR)
    code = ANeuralNetworksModel_setOperandValue(model.get(), 0, &value, 0);
  EXPECT_EQ(code, ANEURALNETWORKS_BAD_DATA);
}

TEST(OverflowTest, AnNnapiInputOfTooManyElementsIsRefusedBeforeTheRun) {
  const std::array<uint32_t, 4> unknown{0, 0, 0, 0};
  const ANeuralNetworksOperandType open{ANEURALNETWORKS_TENSOR_FLOAT32, 4, unknown.data(), 0, 0};
  const NnapiModel model = makeNnapiModel();
  const uint32_t from = 0;
  const uint32_t to = 1;
  ASSERT_EQ(ANeuralNetworksModel_addOperand(model.get(), &open), 0);
  ASSERT_EQ(ANeuralNetworksModel_addOperand(model.get(), &open), 0);
  ASSERT_EQ(ANeuralNetworksModel_addOperation(model.get(), ANEURALNETWORKS_ABS, 1, &from, 1, &to),
            0);
  ASSERT_EQ(ANeuralNetworksModel_identifyInputsAndOutputs(model.get(), 1, &from, 1, &to), 0);
  ASSERT_EQ(ANeuralNetworksModel_finish(model.get()), 0);
  ANeuralNetworksCompilation* compilation = nullptr;
  ASSERT_EQ(ANeuralNetworksCompilation_create(model.get(), &compilation), 0);
  ASSERT_EQ(ANeuralNetworksCompilation_finish(compilation), 0);
  ANeuralNetworksExecution* execution = nullptr;
  ASSERT_EQ(ANeuralNetworksExecution_create(compilation, &execution), 0);
  std::array<float, 4> values{};
  for (const std::array<uint32_t, 4> shape :
       {std::array<uint32_t, 4>{65536, 65536, 65536, 65536},
        std::array<uint32_t, 4>{65536, 65536, 65536, 16384},
        std::array<uint32_t, 4>{UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}}) {
    const ANeuralNetworksOperandType type{ANEURALNETWORKS_TENSOR_FLOAT32, 4, shape.data(), 0, 0};
    for (const size_t size : {size_t{0}, sizeof values}) {
      EXPECT_EQ(ANeuralNetworksExecution_setInput(execution, 0, &type, values.data(), size),
                ANEURALNETWORKS_BAD_DATA);
      EXPECT_EQ(ANeuralNetworksExecution_setOutput(execution, 0, &type, values.data(), size),
                ANEURALNETWORKS_BAD_DATA);
    }
  }
  ANeuralNetworksExecution_free(execution);
  ANeuralNetworksCompilation_free(compilation);
}

// IF(condition, model, model), nested as deeply as possible.
TEST(NestingTest, NnapiModelsWithinModelsHaveALimit) {
  const std::array<uint32_t, 1> one{1};
  const ANeuralNetworksOperandType condition{ANEURALNETWORKS_TENSOR_BOOL8, 1, one.data(), 0, 0};
  const ANeuralNetworksOperandType value{ANEURALNETWORKS_TENSOR_FLOAT32, 1, one.data(), 0, 0};
  const ANeuralNetworksOperandType branch{ANEURALNETWORKS_MODEL, 0, nullptr, 0, 0};
  std::vector<NnapiModel> models;
  // condition, value -> value
  const auto leaf = [&] {
    NnapiModel model = makeNnapiModel();
    for (const auto* type : {&condition, &value, &value})
      EXPECT_EQ(ANeuralNetworksModel_addOperand(model.get(), type), 0);
    const uint32_t from = 1;
    const uint32_t to = 2;
    const std::array<uint32_t, 2> inputs{0, 1};
    EXPECT_EQ(ANeuralNetworksModel_addOperation(model.get(), ANEURALNETWORKS_ABS, 1, &from, 1, &to),
              0);
    EXPECT_EQ(ANeuralNetworksModel_identifyInputsAndOutputs(model.get(), 2, inputs.data(), 1, &to),
              0);
    EXPECT_EQ(ANeuralNetworksModel_finish(model.get()), 0);
    return model;
  };
  models.push_back(leaf());
  int code = 0;
  while (code == 0 && models.size() < 1000) {
    NnapiModel model = makeNnapiModel();
    for (const auto* type : {&condition, &value, &value, &branch})
      ASSERT_EQ(ANeuralNetworksModel_addOperand(model.get(), type), 0);
    code = ANeuralNetworksModel_setOperandValueFromModel(model.get(), 3, models.back().get());
    if (code != 0) break;
    const std::array<uint32_t, 5> inputs{0, 3, 3, 0, 1};
    const uint32_t to = 2;
    ASSERT_EQ(ANeuralNetworksModel_addOperation(model.get(), ANEURALNETWORKS_IF, 5, inputs.data(),
                                                1, &to),
              0);
    ASSERT_EQ(
        ANeuralNetworksModel_identifyInputsAndOutputs(model.get(), 2, inputs.data() + 3, 1, &to),
        ANEURALNETWORKS_NO_ERROR);
    code = ANeuralNetworksModel_finish(model.get());
    models.push_back(std::move(model));
  }
  EXPECT_EQ(code, ANEURALNETWORKS_BAD_DATA);
  EXPECT_GT(models.size(), 16u);
  EXPECT_LT(models.size(), 100u);
  // A model of the greatest allowed depth runs.
  ANeuralNetworksModel* const deepest = models.back().get();
  ANeuralNetworksCompilation* compilation = nullptr;
  ASSERT_EQ(ANeuralNetworksCompilation_create(deepest, &compilation), 0);
  ASSERT_EQ(ANeuralNetworksCompilation_finish(compilation), 0);
  ANeuralNetworksExecution* execution = nullptr;
  ASSERT_EQ(ANeuralNetworksExecution_create(compilation, &execution), 0);
  const bool isTrue = true;
  const float minus = -3;
  float result = 0;
  ASSERT_EQ(ANeuralNetworksExecution_setInput(execution, 0, nullptr, &isTrue, 1), 0);
  ASSERT_EQ(ANeuralNetworksExecution_setInput(execution, 1, nullptr, &minus, sizeof minus), 0);
  ASSERT_EQ(ANeuralNetworksExecution_setOutput(execution, 0, nullptr, &result, sizeof result), 0);
  EXPECT_EQ(ANeuralNetworksExecution_compute(execution), 0);
  EXPECT_EQ(result, 3);
  ANeuralNetworksExecution_free(execution);
  ANeuralNetworksCompilation_free(compilation);
}

// IF operations, each of whose branches are the next subgraph; those of the last one are `last`.
std::vector<uint8_t> nestedBranches(int32_t depth, int32_t last) {
  ModelWriter writer;
  for (int32_t level = 0; level < depth; ++level) {
    if (level > 0) writer.addSubgraph("level " + std::to_string(level));
    const int32_t from = writer.addTensor(schema::TensorType::BOOL, {1});
    const int32_t to = writer.addTensor(schema::TensorType::BOOL, {1});
    schema::IfOptionsT options;
    options.then_subgraph_index = options.else_subgraph_index =
        level + 1 < depth ? level + 1 : last;
    writer.addOperator(schema::BuiltinOperator::IF, {from, from}, {to}, options);
    writer.setArguments({from}, {to});
  }
  writer.addSubgraph("leaf");
  const int32_t from = writer.addTensor(schema::TensorType::BOOL, {1});
  const int32_t to = writer.addTensor(schema::TensorType::BOOL, {1});
  writer.addOperator(schema::BuiltinOperator::LOGICAL_NOT, {from}, {to});
  writer.setArguments({from}, {to});
  return writer.write();
}

TEST(NestingTest, SubgraphsOfAFileWithinOthersHaveALimit) {
  std::string message;
  EXPECT_EQ(statusOf(nestedBranches(20, 20), &message), HEARTH_OK) << message;
  for (const int32_t depth : {200, 20000}) {
    EXPECT_EQ(statusOf(nestedBranches(depth, depth), &message), HEARTH_BAD_DATA);
    EXPECT_NE(message.find("deep"), std::string::npos) << message;
  }
  // The last one refers to the first: the nesting has no end.
  for (const int32_t depth : {1, 2, 5000})
    EXPECT_EQ(statusOf(nestedBranches(depth, 0), &message), HEARTH_BAD_DATA) << message;
}

}  // namespace
}  // namespace hearth::faults
