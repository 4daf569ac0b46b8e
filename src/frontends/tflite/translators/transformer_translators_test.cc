// SPDX-License-Identifier: Apache-2.0
// What the files of language models contain: composites, 4-bit weights, buffers after the
// FlatBuffer.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "base/descriptor.h"
#include "frontends/tflite/testing/import_testing.h"

namespace hearth::tflite {
namespace {

using graph::OperationType;

std::vector<OperationType> typesOf(const ModelWriter& writer) {
  const auto imported = tryImport(writer);
  std::vector<OperationType> types;
  if (!imported) {
    ADD_FAILURE() << imported.error().toString();
    return types;
  }
  for (const graph::Operation& operation : imported->model->main().operations)
    types.push_back(operation.type);
  return types;
}

float floatArgument(const graph::Model& model, size_t index) {
  const graph::Operand& operand =
      model.main().operands[model.main().operations.at(0).inputs.at(index)];
  float value = 0.0f;
  std::memcpy(&value, model.constantData(operand), sizeof(value));
  return value;
}

// A composite of one operation whose decomposition, subgraph 1, multiplies its first two inputs.
ModelWriter composite(const std::string& name, std::vector<uint8_t> attributes,
                      std::vector<ModelWriter::Shape> inputs) {
  ModelWriter model;
  const auto addAll = [&] {
    std::vector<int32_t> added;
    for (const ModelWriter::Shape& shape : inputs)
      added.push_back(model.addTensor(TensorType::FLOAT32, shape));
    return added;
  };
  const std::vector<int32_t> arguments = addAll();
  const int32_t output = model.addTensor(TensorType::FLOAT32, inputs[0]);
  model.addComposite(name, 1, std::move(attributes), arguments, {output});
  model.setArguments(arguments, {output});
  model.addSubgraph("decomposition");
  const std::vector<int32_t> inner = addAll();
  const int32_t product = model.addTensor(TensorType::FLOAT32, inputs[0]);
  schema::MulOptionsT options;
  model.addOperator(BuiltinOperator::MUL, {inner[0], inner[1]}, {product}, options);
  model.setArguments(inner, {product});
  return model;
}

TEST(Composites, KnownOnesAreOneOperation) {
  const auto attention = tryImport(
      composite("odml.scaled_dot_product_attention", flexMap({{"scale", 0.5}, {"logit_cap", 30}}),
                {{1, 2, 4, 8}, {1, 6, 1, 8}, {1, 6, 1, 8}, {1, 1, 2, 6}}));
  ASSERT_TRUE(attention) << attention.error().toString();
  EXPECT_EQ(attention->model->main().operations.at(0).type,
            OperationType::kScaledDotProductAttention);
  EXPECT_EQ(floatArgument(*attention->model, 4), 0.5f);
  EXPECT_EQ(floatArgument(*attention->model, 5), 30.0f);

  const auto unscaled = tryImport(composite("odml.scaled_dot_product_attention", {},
                                            {{1, 2, 4, 16}, {1, 6, 1, 16}, {1, 6, 1, 16}}));
  ASSERT_TRUE(unscaled) << unscaled.error().toString();
  EXPECT_EQ(floatArgument(*unscaled->model, 4), 0.25f);

  EXPECT_THAT(typesOf(composite("odml.rms_norm", flexMap({{"epsilon", 1e-6}}), {{2, 4}, {4}})),
              ElementsAre(OperationType::kRmsNorm));
  EXPECT_THAT(
      typesOf(composite("odml.group_norm",
                        flexMap({{"epsilon", 1e-6}, {"num_groups", 2}, {"channel_axis", -1}}),
                        {{2, 3, 4}, {4}, {4}})),
      ElementsAre(OperationType::kGroupNorm));
}

TEST(Composites, OthersAreTheirDecomposition) {
  const std::vector<ModelWriter> writers = {
      composite("odml.unheard_of", {}, {{2, 4}, {4}}),
      composite("odml.rms_norm", {}, {{2, 4}, {4}}),                               // no epsilon
      composite("odml.rms_norm", flexMap({{"epsilon", 1e-6}}), {{2, 4}, {2, 4}}),  // another scale
      // Layer normalisation that is called group normalisation.
      composite("odml.group_norm",
                flexMap({{"epsilon", 1e-6}, {"num_groups", 1}, {"channel_axis", 2}}),
                {{2, 3, 4}, {4}, {4}}),
      composite("odml.group_norm", flexMap({{"num_groups", 2}, {"eps", 1e-5}}), {{2, 4}, {4}})};
  for (const ModelWriter& writer : writers)
    EXPECT_THAT(typesOf(writer), ElementsAre(OperationType::kMul));
}

TEST(Composites, WrongCallsAreErrors) {
  ModelWriter attributes = composite("odml.rms_norm", {1, 2, 3}, {{2, 4}, {4}});
  EXPECT_THAT(errorOf(attributes), HasSubstr("no FlexBuffer with a map"));

  ModelWriter missing = composite("other", {}, {{2, 4}, {4}});
  missing.model.subgraphs[0]
      ->operators[0]
      ->builtin_options_2.AsStableHLOCompositeOptions()
      ->decomposition_subgraph_index = 7;
  EXPECT_THAT(errorOf(missing), HasSubstr("calls subgraph 7 of 2"));

  ModelWriter counts = composite("other", {}, {{2, 4}, {4}});
  counts.model.subgraphs[1]->inputs.pop_back();
  EXPECT_THAT(errorOf(counts), HasSubstr("gives 2 inputs to subgraph 1, which has 1"));

  ModelWriter twice = composite("other", {}, {{2, 4}, {4}});
  twice.model.subgraphs[1]->inputs = {0, 0};
  EXPECT_THAT(errorOf(twice), HasSubstr("input 1 of subgraph 1 is tensor 0"));

  ModelWriter outputs = composite("other", {}, {{2, 4}, {4}});
  outputs.model.subgraphs[1]->outputs = {2, 2};
  EXPECT_THAT(errorOf(outputs), HasSubstr("takes 1 outputs of subgraph 1, which has 2"));

  ModelWriter written = composite("other", {}, {{2, 4}, {4}});
  written.model.subgraphs[0]->operators[0]->outputs = {1};
  EXPECT_THAT(errorOf(written), HasSubstr("writes tensor 1, which is an input"));

  ModelWriter optionless = composite("other", {}, {{2, 4}, {4}});
  optionless.model.subgraphs[0]->operators[0]->builtin_options_2.Reset();
  EXPECT_THAT(errorOf(optionless), HasSubstr("no options"));
}

TEST(Composites, RecursiveCallsEnd) {
  ModelWriter model = composite("other", {}, {{2, 4}, {4}});
  // The decomposition calls itself eight times: 8^16 calls without a bound.
  model.model.subgraphs[1]->operators.clear();
  for (int i = 0; i < 8; ++i) {
    const int32_t result = model.addTensor(TensorType::FLOAT32, {2, 4});
    model.addComposite("other", 1, {}, {0, 1}, {result});
  }
  EXPECT_THAT(errorOf(model), HasSubstr("the limit is 16"));
  // If the innermost calls have no operations, the work has to be limited, too.
  model.model.subgraphs[0]
      ->operators[0]
      ->builtin_options_2.AsStableHLOCompositeOptions()
      ->decomposition_subgraph_index = 1;
  for (int depth = 1; depth < 14; ++depth) {
    for (auto& call : model.subgraph().operators)
      call->builtin_options_2.AsStableHLOCompositeOptions()->decomposition_subgraph_index =
          depth + 1;
    model.addSubgraph("next");
    model.addTensor(TensorType::FLOAT32, {2, 4});
    model.addTensor(TensorType::FLOAT32, {4});
    for (int i = 0; i < 8; ++i) {
      const int32_t result = model.addTensor(TensorType::FLOAT32, {2, 4});
      model.addComposite("other", depth + 2, {}, {0, 1}, {result});
    }
    model.setArguments({0, 1}, {0});
  }
  model.subgraph().operators.clear();
  EXPECT_THAT(errorOf(model), HasSubstr("too often"));
}

TEST(Composites, ResultsMayBeInputsAndConstants) {
  ModelWriter model = composite("other", {}, {{2, 4}, {2, 4}});
  model.model.subgraphs[1]->operators.clear();
  model.model.subgraphs[1]->outputs = {1};
  EXPECT_THAT(typesOf(model), ElementsAre(OperationType::kReshape));
}

ModelWriter blockwiseLayer(ModelWriter::Shape scaleShape, int32_t blockSize) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {1, 4});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {1, 2});
  const int32_t scales =
      model.addConstantBytes(TensorType::FLOAT16, std::move(scaleShape), std::vector<uint8_t>(8));
  const int32_t weights = model.addBlockwise({2, 4}, {1, 2, 3, 4}, scales, blockSize);
  schema::FullyConnectedOptionsT options;
  model.addOperator(BuiltinOperator::FULLY_CONNECTED, {input, weights, -1}, {output}, options);
  model.setArguments({input}, {output});
  return model;
}

TEST(Blockwise, ScalesFollowTheLayer) {
  const auto imported = tryImport(blockwiseLayer({2, 2}, 2));
  ASSERT_TRUE(imported) << imported.error().toString();
  const graph::Subgraph& main = imported->model->main();
  const graph::Operation& layer = main.operations.at(0);
  ASSERT_EQ(layer.inputs.size(), 5u);
  EXPECT_EQ(main.operands[layer.inputs[1]].type, graph::OperandType::kTensorInt4);
  EXPECT_EQ(main.operands[layer.inputs[1]].scale, 0.0f);
  EXPECT_EQ(main.operands[layer.inputs[4]].dimensions, (graph::Dimensions{2, 2}));
}

TEST(Blockwise, ScalesThatDoNotFitAreErrors) {
  EXPECT_THAT(errorOf(blockwiseLayer({4, 1}, 2)), HasSubstr("do not fit"));
  EXPECT_THAT(errorOf(blockwiseLayer({2, 2}, 3)), HasSubstr("do not fit"));
  EXPECT_THAT(errorOf(blockwiseLayer({2, 2}, 0)), HasSubstr("do not fit"));
  ModelWriter other = blockwiseLayer({2, 2}, 2);
  other.tensor(3).type = TensorType::INT8;
  EXPECT_THAT(errorOf(other), HasSubstr("quantised by blocks"));
  ModelWriter far = blockwiseLayer({2, 2}, 2);
  far.tensor(3).quantization->details.AsBlockwiseQuantization()->scales = 99;
  EXPECT_THAT(errorOf(far), HasSubstr("tensor 99 does not exist"));
}

TEST(Select, BroadcastsWhereShapesDiffer) {
  const auto types = [](ModelWriter::Shape condition) {
    ModelWriter model;
    model.addTensor(TensorType::BOOL, std::move(condition));
    for (int i = 0; i < 3; ++i) model.addTensor(TensorType::FLOAT32, {2, 3});
    model.addOperator(BuiltinOperator::SELECT, {0, 1, 2}, {3});
    model.setArguments({0, 1, 2}, {3});
    return typesOf(model);
  };
  EXPECT_THAT(types({2, 3}), ElementsAre(OperationType::kSelect));
  EXPECT_THAT(types({}), ElementsAre(OperationType::kSelectV2));
  EXPECT_THAT(types({2}), ElementsAre(OperationType::kReshape, OperationType::kSelectV2));
}

// A sparse file of 3 GiB, whose constant lies beyond the first 2 GiB.
TEST(LargeFiles, BuffersBehindTheFlatBuffer) {
  constexpr uint64_t kPlace = uint64_t{5} << 29;
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {4});
  const int32_t constant = model.addConstantBytes(TensorType::FLOAT32, {4}, {});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {4});
  model.model.buffers.back()->offset = kPlace;
  model.model.buffers.back()->size = 16;
  schema::AddOptionsT options;
  model.addOperator(BuiltinOperator::ADD, {input, constant}, {output}, options);
  model.setArguments({input}, {output});
  std::string path = testing::TempDir() + "/hearth_large_XXXXXX";
  base::Descriptor file(::mkstemp(path.data()));
  ASSERT_GE(file.get(), 0);
  const std::vector<uint8_t> bytes = model.write();
  const float values[] = {1, 2, 3, 4};
  const bool isWritten =
      ::ftruncate(file.get(), off_t{3} << 30) == 0 &&
      ::pwrite(file.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()) &&
      ::pwrite(file.get(), values, sizeof(values), kPlace) == sizeof(values);
  const auto opened = isWritten ? ModelFile::open(path) : nullptr;
  ::unlink(path.c_str());
  if (!isWritten) GTEST_SKIP() << "The file system has no files of 3 GiB.";
  ASSERT_TRUE(opened) << opened.error().toString();
  const auto imported = (*opened)->importSubgraph(0);
  ASSERT_TRUE(imported) << imported.error().toString();
  const graph::Model& read = *imported->model;
  const graph::Operand& operand = read.main().operands[read.main().operations.at(0).inputs.at(1)];
  EXPECT_EQ(operand.location.offset, kPlace);
  EXPECT_EQ(std::memcmp(read.constantData(operand), values, sizeof(values)), 0);
}

}  // namespace
}  // namespace hearth::tflite
