// SPDX-License-Identifier: Apache-2.0
#include "graph/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "graph/model_digest.h"

namespace hearth::graph {
namespace {

Operand tensor(Lifetime lifetime, Dimensions dimensions = {2, 3}) {
  Operand operand;
  operand.dimensions = std::move(dimensions);
  operand.lifetime = lifetime;
  return operand;
}

// out = relu(relu(in)), operations given in run order.
Model chain() {
  Model model;
  Subgraph graph;
  graph.operands = {tensor(Lifetime::kSubgraphInput), tensor(Lifetime::kTemporary),
                    tensor(Lifetime::kSubgraphOutput)};
  graph.operations = {{OperationType::kRelu, {0}, {1}, ""}, {OperationType::kRelu, {1}, {2}, ""}};
  graph.inputs = {0};
  graph.outputs = {2};
  model.subgraphs.push_back(graph);
  return model;
}

TEST(Model, ValidChainPasses) {
  auto status = validate(chain());
  EXPECT_TRUE(status) << status.error().toString();
}

TEST(Model, StructureDigestTellsModelsApart) {
  const auto digest = structureDigest(chain());
  EXPECT_EQ(structureDigest(chain()), digest);
  Model named = chain();
  named.main().name = "main";
  named.main().operands[0].name = "input";
  EXPECT_EQ(structureDigest(named), digest);
  const auto differs = [&](auto change) {
    Model model = chain();
    change(model);
    return structureDigest(model) != digest;
  };
  EXPECT_TRUE(differs([](Model& m) { m.relaxFloat32ToFloat16 = true; }));
  EXPECT_TRUE(differs([](Model& m) { m.constantBytes = {0}; }));
  EXPECT_TRUE(differs([](Model& m) { m.main().operands[1].dimensions = {3, 2}; }));
  EXPECT_TRUE(differs([](Model& m) { m.main().operands[1].zeroPoint = 1; }));
  EXPECT_TRUE(differs([](Model& m) { m.main().operands[1].scale = 0.5f; }));
  EXPECT_TRUE(differs([](Model& m) { m.main().operands[1].perChannel.scales = {1}; }));
  EXPECT_TRUE(differs([](Model& m) { m.main().operations[1].type = OperationType::kRelu6; }));
  EXPECT_TRUE(differs([](Model& m) { std::swap(m.main().inputs, m.main().outputs); }));
}

TEST(Model, SortBringsProducersFirst) {
  Model model = chain();
  std::swap(model.main().operations[0], model.main().operations[1]);
  EXPECT_FALSE(validate(model));
  ASSERT_TRUE(sortIntoRunOrder(&model));
  EXPECT_TRUE(validate(model));
}

TEST(Model, CyclesAndDoubleWritesAreRefused) {
  Model cycle = chain();
  cycle.main().operations[0].inputs = {2};
  EXPECT_FALSE(sortIntoRunOrder(&cycle));
  Model last = chain();
  last.main().operations[1].inputs = {2};
  EXPECT_THAT(sortIntoRunOrder(&last).error().message(), testing::HasSubstr("1 of 2 operations"));
  Model twice = chain();
  twice.main().operations[1].outputs = {1};
  EXPECT_FALSE(validate(twice));
}

TEST(Model, IndicesOutOfRangeAreRefused) {
  Model model = chain();
  model.main().operations[0].inputs = {77};
  EXPECT_FALSE(validate(model));
  EXPECT_FALSE(sortIntoRunOrder(&model));
  model = chain();
  model.main().outputs = {3};
  EXPECT_FALSE(validate(model));
  model = chain();
  model.main().operations[0].outputs = {0xffffffff};
  EXPECT_FALSE(validate(model));
}

TEST(Model, UnwrittenOutputIsRefused) {
  Model model = chain();
  model.main().operations.pop_back();
  EXPECT_FALSE(validate(model));
}

TEST(Model, QuantisationIsChecked) {
  for (float scale : {0.0f, -1.0f, NAN, INFINITY}) {
    Model model = chain();
    model.main().operands[1].type = OperandType::kTensorQuant8Asymm;
    model.main().operands[1].scale = scale;
    EXPECT_FALSE(validate(model)) << scale;
  }
  Model model = chain();
  model.main().operands[1].type = OperandType::kTensorQuant8Asymm;
  model.main().operands[1].scale = 0.5f;
  EXPECT_TRUE(validate(model));
  model.main().operands[1].zeroPoint = 256;
  EXPECT_FALSE(validate(model));
}

// An operation of a driver's extension copies its input, of a type of that extension.
Model chainOfADriver() {
  constexpr int32_t kPrefix = 5 << 16;
  Model model;
  model.extensions = {{5, "com.example"}};
  Subgraph graph;
  graph.operands = {tensor(Lifetime::kSubgraphInput), tensor(Lifetime::kSubgraphOutput)};
  for (Operand& operand : graph.operands) {
    operand.type = static_cast<OperandType>(kPrefix | 1);
    operand.driverElementSize = 24;
  }
  graph.operations = {{static_cast<OperationType>(kPrefix | 2), {0}, {1}, ""}};
  graph.inputs = {0};
  graph.outputs = {1};
  model.subgraphs.push_back(graph);
  return model;
}

TEST(Model, TypesOfDriversNeedTheirExtensionAndSize) {
  const Model good = chainOfADriver();
  EXPECT_TRUE(validate(good));
  EXPECT_EQ(byteSize(good.main().operands[0]).value(), 2u * 3 * 24);
  EXPECT_EQ(good.findExtension(int32_t{5 << 16 | 77}), good.extensions.data());
  EXPECT_EQ(good.findExtension("com.example"), good.extensions.data());
  EXPECT_EQ(good.findExtension("com"), nullptr);
  const auto isRefused = [&](auto change) {
    Model model = good;
    change(model);
    return !validate(model);
  };
  EXPECT_TRUE(isRefused([](Model& m) { m.extensions.clear(); }));
  EXPECT_TRUE(isRefused([](Model& m) { m.extensions[0].prefix = 6; }));
  EXPECT_TRUE(isRefused([](Model& m) { m.extensions[0].name = ""; }));
  for (const int32_t prefix : {5, 1, 0, -1, 0x8000})
    EXPECT_TRUE(isRefused([&](Model& m) { m.extensions.push_back({prefix, "another"}); }));
  EXPECT_TRUE(isRefused([](Model& m) { m.extensions.push_back({6, "com.example"}); }));
  EXPECT_FALSE(isRefused([](Model& m) { m.extensions.push_back({6, "another"}); }));
  EXPECT_TRUE(isRefused([](Model& m) { m.main().operands[1].driverElementSize = 0; }));
  EXPECT_TRUE(isRefused([](Model& m) { m.main().operands[1].scale = 1; }));
  EXPECT_TRUE(isRefused([](Model& m) { m.main().operands[1].zeroPoint = 1; }));
  EXPECT_TRUE(isRefused([](Model& m) { m.main().operands[1].perChannel = {0, {0.5f, 0.5f}}; }));
  EXPECT_TRUE(isRefused(
      [](Model& m) { m.main().operations[0].type = static_cast<OperationType>(6 << 16); }));
  // Only types of drivers have such data.
  EXPECT_TRUE(isRefused([](Model& m) { m.main().operands[0].type = OperandType::kTensorFloat32; }));
  Model plain = chain();
  plain.main().operands[0].driverData = {1};
  EXPECT_FALSE(validate(plain));
}

TEST(Model, ConstantsMustLieInTheirMemory) {
  Model model = chain();
  model.main().operands[0] = tensor(Lifetime::kConstantCopy);
  model.main().inputs.clear();
  model.main().operands[0].location = {0, 0, 24};
  model.constantBytes.resize(24);
  EXPECT_TRUE(validate(model));
  model.main().operands[0].location = {0, 1, 24};
  EXPECT_FALSE(validate(model));
  model.main().operands[0].location = {0, UINT64_MAX, 24};
  EXPECT_FALSE(validate(model));
  model.main().operands[0].location = {0, 0, 23};
  EXPECT_FALSE(validate(model));
  model.main().operands[0].lifetime = Lifetime::kConstantReference;
  model.main().operands[0].location = {3, 0, 24};
  EXPECT_FALSE(validate(model));
}

TEST(Model, SizesThatOverflowAreRefused) {
  Operand operand = tensor(Lifetime::kTemporary, {0xffffffff, 0xffffffff, 0xffffffff});
  EXPECT_FALSE(byteSize(operand));
  operand.dimensions = {0x80000000, 0x40000000};
  EXPECT_FALSE(byteSize(operand));
}

TEST(Model, SubgraphCyclesAreRefused) {
  Model model = chain();
  Operand reference;
  reference.type = OperandType::kModel;
  reference.lifetime = Lifetime::kSubgraph;
  reference.subgraphIndex = 1;
  model.main().operands.push_back(reference);
  model.subgraphs.push_back(chain().main());
  EXPECT_TRUE(validate(model));
  reference.subgraphIndex = 0;
  model.subgraphs[1].operands.push_back(reference);
  EXPECT_FALSE(validate(model));
}

}  // namespace
}  // namespace hearth::graph
