// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/tflite/reader/file_view.h"
#include "frontends/tflite/testing/import_testing.h"

namespace hearth::tflite {
namespace {

TEST(SubgraphBuilder, OutputsThatAreInputsConstantsOrTwice) {
  FloatModel model({{2}}, {{2}});
  model.addOperator(BuiltinOperator::RELU, {0}, {1});
  const int32_t constant = model.addConstant<float>(TensorType::FLOAT32, {2}, {1.0f, 2.0f});
  model.setArguments({0}, {1, 1, 0, constant});
  const ImportedGraph imported = import(model);
  EXPECT_THAT(linesOf(*imported.model),
              ElementsAre("RELU t0 -> t1", "RESHAPE t1 {2} -> t1", "RESHAPE t0 {2} -> t0",
                          "RESHAPE t2 {2} -> t2"));
  EXPECT_EQ(imported.outputs.size(), 4u);
}

TEST(SubgraphBuilder, OperationsInAnyOrder) {
  FloatModel model({{2}}, {{2}, {2}});
  model.addOperator(BuiltinOperator::RELU, {2}, {1});
  model.addOperator(BuiltinOperator::TANH, {0}, {2});
  EXPECT_THAT(translate(model), ElementsAre("TANH t0 -> t2", "RELU t2 -> t1"));
}

TEST(SubgraphBuilder, UnknownDimensions) {
  FloatModel model({{1, 2}}, {{1, 2}});
  model.tensor(0).shape_signature = {-1, 2};
  model.tensor(1).shape_signature = {-1, 2};
  model.addOperator(BuiltinOperator::RELU, {0}, {1});
  const ImportedGraph imported = import(model);
  ASSERT_EQ(imported.inputs.size(), 1u);
  EXPECT_EQ(imported.inputs[0].dimensions, (graph::Dimensions{0, 2}));
  EXPECT_EQ(imported.inputs[0].fileDimensions, (graph::Dimensions{1, 2}));
}

TEST(SubgraphBuilder, SignaturesNameTensors) {
  FloatModel model({{2}}, {{2}});
  model.addOperator(BuiltinOperator::RELU, {0}, {1});
  auto signature = std::make_unique<schema::SignatureDefT>();
  signature->signature_key = "decode";
  auto name = std::make_unique<schema::TensorMapT>();
  name->name = "tokens";
  name->tensor_index = 0;
  signature->inputs.push_back(std::move(name));
  model.model.signature_defs.push_back(std::move(signature));
  const auto file = ModelFile::fromPool(poolOf(model.write()));
  ASSERT_TRUE(file);
  const auto imported = (*file)->importSignature("decode");
  ASSERT_TRUE(imported) << imported.error().toString();
  EXPECT_EQ(imported->inputs[0].name, "tokens");
  EXPECT_EQ(imported->inputs[0].tensorName, "t0");
  EXPECT_EQ(imported->outputs[0].name, "t1");
  EXPECT_EQ(imported->signatureKey, "decode");
}

// x + constant, where the constant's value lies at `place` of the pools after the tables.
Result<ImportedGraph> importWithValueAt(uint64_t place, const std::vector<memory::PoolRef>& pools) {
  FloatModel model({{2}}, {{2}});
  const int32_t constant = model.addConstant<float>(TensorType::FLOAT32, {2}, {0.0f, 0.0f});
  model.addOperator(BuiltinOperator::ADD, {0, constant}, {1}, schema::AddOptionsT());
  schema::BufferT& buffer = *model.model.buffers.back();
  buffer.data.clear();
  buffer.offset = place;
  buffer.size = 2 * sizeof(float);
  HEARTH_ASSIGN(const auto file, ModelFile::fromTables(poolOf(model.write()), pools));
  return file->importSubgraph(0);
}

TEST(SubgraphBuilder, ValuesInPoolsOfTheirOwn) {
  const std::vector<uint8_t> zeros(64);
  const std::vector<memory::PoolRef> pools = {poolOf(zeros), poolOf(zeros)};
  const float value[] = {3.0f, 4.0f};
  std::memcpy(pools[1]->mutableData() + 16, value, sizeof(value));
  const auto imported = importWithValueAt(2 * kPoolSpan + 16, pools);
  ASSERT_TRUE(imported) << imported.error().toString();
  const graph::Model& model = *imported->model;
  ASSERT_EQ(model.pools.size(), 3u);
  const graph::Operand& constant = model.main().operands[model.main().operations[0].inputs[1]];
  EXPECT_EQ(constant.lifetime, graph::Lifetime::kConstantReference);
  EXPECT_EQ(constant.location.pool, 2u);
  EXPECT_EQ(constant.location.offset, 16u);
  EXPECT_EQ(valueOf<float>(model, constant, 1), 4.0f);
}

TEST(SubgraphBuilder, ValuesOutsideTheirPools) {
  const std::vector<memory::PoolRef> pools = {poolOf(std::vector<uint8_t>(64))};
  for (const uint64_t place : {kPoolSpan + 60, kPoolSpan + 64, 2 * kPoolSpan, kPoolSpan - 16,
                               uint64_t{1} << 63, ~uint64_t{7}}) {
    const auto imported = importWithValueAt(place, pools);
    ASSERT_FALSE(imported) << place;
    EXPECT_THAT(imported.error().toString(), HasSubstr("outside the"));
  }
}

// Constants in misaligned buffers are copied; all others stay in the file.
TEST(SubgraphBuilder, BuffersOutsideTheTables) {
  for (const bool isAligned : {true, false}) {
    FloatModel model({{2}}, {{2}});
    const int32_t weights = model.addTensor(TensorType::FLOAT32, {2});
    auto buffer = std::make_unique<schema::BufferT>();
    buffer->offset = 1;  // not 0, so that the fields exist and the size stays
    buffer->size = 8;
    model.model.buffers.push_back(std::move(buffer));
    model.tensor(weights).buffer = 1;
    model.addOperator(BuiltinOperator::ADD, {0, weights}, {1});
    std::vector<uint8_t> bytes = model.write();
    bytes.resize((bytes.size() + 15) / 16 * 16 + (isAligned ? 0 : 1));
    model.model.buffers[1]->offset = bytes.size();
    std::vector<uint8_t> written = model.write();
    ASSERT_LE(written.size(), bytes.size());
    written.resize(bytes.size());
    const float values[] = {3.0f, 4.0f};
    const auto* raw = reinterpret_cast<const uint8_t*>(values);
    written.insert(written.end(), raw, raw + sizeof(values));
    const auto file = ModelFile::fromPool(poolOf(written));
    ASSERT_TRUE(file) << file.error().toString();
    const auto imported = (*file)->importSubgraph(0);
    ASSERT_TRUE(imported) << imported.error().toString();
    const graph::Subgraph& main = imported->model->main();
    const graph::Operand& operand = main.operands[main.operations.at(0).inputs[1]];
    EXPECT_EQ(operand.lifetime,
              isAligned ? graph::Lifetime::kConstantReference : graph::Lifetime::kConstantCopy);
    EXPECT_EQ(valueOf<float>(*imported->model, operand, 1), 4.0f);
  }
}

}  // namespace
}  // namespace hearth::tflite
