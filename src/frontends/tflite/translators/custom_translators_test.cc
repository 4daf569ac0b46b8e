// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "frontends/tflite/testing/import_testing.h"
#include "graph/model_digest.h"
#include "ops/custom_operator.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;
using schema::TensorType;
using testing::ElementsAre;
using testing::HasSubstr;

// An operator whose outputs are like its first input; it fails for options that begin with '!'
// and needs values for those that begin with '?'.
class LikeInput final : public ops::CustomOperator, public ops::CustomNode {
 public:
  LikeInput(std::string name, int32_t version) : name_(std::move(name)), version_(version) {}
  std::string_view name() const override { return name_; }
  int32_t version() const override { return version_; }
  Result<std::shared_ptr<const ops::CustomNode>> makeNode(
      const ops::CustomCall& call) const override {
    if (!call.options.empty() && call.options[0] == '!')
      return fail(ErrorCode::kBadData, "These options are wrong.");
    return std::shared_ptr<const ops::CustomNode>(std::shared_ptr<void>(), this);
  }
  Result<ops::CustomOutputs> describeOutputs(const ops::CustomCall& call) const override {
    ops::CustomOutputs said;
    said.needsValues = !call.options.empty() && call.options[0] == '?';
    if (said.needsValues) return said;
    graph::Operand like;
    like.type = call.inputs[0].type();
    like.dimensions = call.inputs[0].dimensions;
    like.scale = call.inputs[0].operand->scale;
    like.zeroPoint = call.inputs[0].operand->zeroPoint;
    said.outputs.assign(call.outputs.size(), like);
    return said;
  }
  Status compute(const ops::CustomCall&) const override { return {}; }

 private:
  const std::string name_;
  const int32_t version_;
};

class CustomTranslators : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (const auto& [name, version] : {std::pair{"Like", 7}, std::pair{"Liké", 8}})
      ASSERT_TRUE(ops::registerCustomOperator(std::make_unique<LikeInput>(name, version)));
  }

  // Two inputs, of which the second is omitted, and an output about which the file says nothing.
  static ModelWriter model(std::vector<uint8_t> options, const std::string& name = "Like") {
    ModelWriter model;
    const int32_t input = model.addTensor(TensorType::UINT8, {2, 3}, 0.5f, 3);
    const int32_t output = model.addTensor(TensorType::FLOAT32, {});
    model.addCustom(name, {input, -1}, {output}, std::move(options), 4);
    model.setArguments({input}, {output});
    return model;
  }
};

std::string bytesOf(const graph::Model& model, uint32_t input) {
  const graph::Subgraph& main = model.main();
  const graph::Operand& operand = main.operands[main.operations[0].inputs[input]];
  return {reinterpret_cast<const char*>(model.constantData(operand)), operand.location.length};
}

TEST_F(CustomTranslators, NameVersionsOptionsAndTensors) {
  const ImportedGraph imported = import(model({'a', 0, 'b'}));
  EXPECT_THAT(linesOf(*imported.model), ElementsAre("CUSTOM % 7 4 % t0 - -> t1"));
  EXPECT_EQ(bytesOf(*imported.model, ops::kCustomName), "Like");
  EXPECT_EQ(bytesOf(*imported.model, ops::kCustomOptions), std::string("a\0b", 3));
  // The output is as the operator describes it, not the file.
  const TensorInfo& output = imported.outputs.at(0);
  EXPECT_EQ(output.type, OperandType::kTensorQuant8Asymm);
  EXPECT_EQ(output.dimensions, (graph::Dimensions{2, 3}));
  EXPECT_EQ(output.scale, 0.5f);
  EXPECT_EQ(output.zeroPoint, 3);
  EXPECT_TRUE(ops::validateOperations(*imported.model));
  EXPECT_EQ(ops::operatorName(*imported.model, imported.model->main(),
                              imported.model->main().operations[0]),
            "Like");
}

// The operator says that its output is as large as its input. The next operation would read a
// constant of that size.
TEST_F(CustomTranslators, ConstantsAndInputsAreNoOutputs) {
  for (const bool isConstant : {true, false}) {
    ModelWriter model;
    const int32_t input = model.addTensor(TensorType::INT32, {1 << 20});
    const int32_t target = isConstant ? model.ints({1}) : model.addTensor(TensorType::INT32, {1});
    const int32_t output = model.addTensor(TensorType::INT32, {1 << 20});
    model.addCustom("Like", {input}, {target}, {}, 1);
    model.addOperator(BuiltinOperator::RESHAPE, {input, target}, {output});
    model.setArguments(isConstant ? std::vector<int32_t>{input} : std::vector{input, target},
                       {output});
    EXPECT_THAT(errorOf(model), HasSubstr("which is an input, a constant or a variable"));
  }
}

TEST_F(CustomTranslators, NoOptionsAreOmitted) {
  const ImportedGraph imported = import(model({}));
  EXPECT_THAT(linesOf(*imported.model), ElementsAre("CUSTOM % 7 4 - t0 - -> t1"));
}

TEST_F(CustomTranslators, TheOperatorsVersionBelongsToTheStructure) {
  const auto digest = [](const std::string& name) {
    return graph::structureDigest(*import(model({}, name)).model);
  };
  EXPECT_EQ(digest("Like"), digest("Like"));
  ImportedGraph imported = import(model({}));
  graph::Model other = *imported.model;
  const uint32_t version = other.main().operations[0].inputs[ops::kCustomVersion];
  ++other.constantBytes[other.main().operands[version].location.offset];
  EXPECT_NE(graph::structureDigest(other), graph::structureDigest(*imported.model));
}

TEST_F(CustomTranslators, OutputsThatNeedValuesAreOpen) {
  const ImportedGraph imported = import(model({'?'}));
  EXPECT_EQ(imported.outputs.at(0).dimensions, graph::Dimensions());
  EXPECT_FALSE(imported.outputs.at(0).isRankZeroTensor);
  EXPECT_EQ(imported.outputs.at(0).type, OperandType::kTensorFloat32);
}

TEST_F(CustomTranslators, FailuresOfTheOperator) {
  EXPECT_THAT(errorOf(model({'!'})), HasSubstr("These options are wrong."));
}

TEST_F(CustomTranslators, UnknownNames) {
  EXPECT_THAT(errorOf(model({}, "Lik")), HasSubstr("hearth_custom_operator_register"));
  EXPECT_THAT(errorOf(model({}, "")), HasSubstr("hearth_custom_operator_register"));
  ModelWriter writer = model({});
  const auto file = ModelFile::fromPool(poolOf(writer.write()));
  ASSERT_TRUE(file);
  EXPECT_TRUE((*file)->summary().subgraphs.at(0).operations.at(0).isSupported);
  EXPECT_TRUE(isKnownCustomOperation("TFLite_Detection_PostProcess"));
  EXPECT_FALSE(isKnownCustomOperation("Like"));
}

// Long options lie after the tables, at an offset that the file gives.
TEST_F(CustomTranslators, LargeOptionsAreBoundsChecked) {
  ModelWriter writer = model({});
  schema::OperatorT& operation = *writer.subgraph().operators[0];
  operation.large_custom_options_offset = 16;
  operation.large_custom_options_size = 5;
  const std::vector<uint8_t> bytes = writer.write();
  const ImportedGraph imported = import(writer);
  EXPECT_EQ(bytesOf(*imported.model, ops::kCustomOptions),
            std::string(bytes.begin() + 16, bytes.begin() + 21));
  for (const auto& [offset, size] : {std::pair<uint64_t, uint64_t>{UINT64_MAX, 5},
                                     {16, UINT64_MAX},
                                     {UINT64_MAX, UINT64_MAX},
                                     {16, bytes.size() - 15}}) {
    operation.large_custom_options_offset = offset;
    operation.large_custom_options_size = size;
    EXPECT_THAT(errorOf(writer), HasSubstr("outside of the file"));
  }
  // Converters write 1 for none.
  operation.large_custom_options_offset = 1;
  EXPECT_EQ(errorOf(writer), "imported");
}

TEST_F(CustomTranslators, MissingArguments) {
  ModelWriter writer = model({});
  writer.subgraph().operators[0]->outputs.clear();
  writer.setArguments({0}, {0});
  const ImportedGraph imported = import(writer);
  EXPECT_FALSE(ops::validateOperations(*imported.model));
  writer = model({});
  writer.subgraph().operators[0]->outputs = {0};
  EXPECT_THAT(errorOf(writer), HasSubstr("which is an input"));
}

}  // namespace
}  // namespace hearth::tflite
