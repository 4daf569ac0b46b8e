// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/tflite/testing/import_testing.h"

namespace hearth::tflite {
namespace {

TEST(ReduceTranslators, AxesAndKeepDims) {
  schema::ReducerOptionsT options;
  options.keep_dims = true;
  const std::pair<BuiltinOperator, std::string> cases[] = {
      {BuiltinOperator::MEAN, "MEAN t0 {1} 1 -> t1"},
      {BuiltinOperator::SUM, "REDUCE_SUM t0 {1} true -> t1"},
      {BuiltinOperator::REDUCE_PROD, "REDUCE_PROD t0 {1} true -> t1"},
      {BuiltinOperator::REDUCE_MAX, "REDUCE_MAX t0 {1} true -> t1"},
      {BuiltinOperator::REDUCE_MIN, "REDUCE_MIN t0 {1} true -> t1"}};
  for (const auto& [code, line] : cases) {
    FloatModel model({{2, 3}}, {{2, 1}});
    // A scalar axis becomes a tensor of one element.
    const int32_t axis = model.addConstant<int32_t>(TensorType::INT32, {}, {1});
    model.addOperator(code, {0, axis}, {1}, options);
    EXPECT_THAT(translate(model), ElementsAre(line));
  }
}

TEST(ReduceTranslators, ArgmaxOfBothWidths) {
  FloatModel model({{2, 3}}, {});
  const int32_t axis = model.ints({-1});
  const int32_t narrow = model.addTensor(TensorType::INT32, {2});
  const int32_t wide = model.addTensor(TensorType::INT64, {2});
  model.addOperator(BuiltinOperator::ARG_MAX, {0, axis}, {narrow}, schema::ArgMaxOptionsT());
  model.addOperator(BuiltinOperator::ARG_MIN, {0, axis}, {wide}, schema::ArgMinOptionsT());
  model.setArguments({0}, {narrow, wide});
  const std::vector<std::string> lines = translate(model);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "ARGMAX t0 -1 -> t2");
  EXPECT_EQ(lines[1], graph::nameOf(graph::OperationType::kArgmin64) + " t0 -1 -> t3");
}

TEST(ReduceTranslators, Topk) {
  FloatModel model({{2, 3}}, {{2, 2}});
  const int32_t count = model.addConstant<int32_t>(TensorType::INT32, {}, {2});
  const int32_t indices = model.addTensor(TensorType::INT32, {2, 2});
  model.addOperator(BuiltinOperator::TOPK_V2, {0, count}, {1, indices});
  model.setArguments({0}, {1, indices});
  EXPECT_THAT(translate(model), ElementsAre("TOPK_V2 t0 2 -> t1 t3"));
}

TEST(ReduceTranslators, TopkWithACountOfTheRun) {
  for (const TensorType type : {TensorType::INT32, TensorType::INT64}) {
    FloatModel model({{2, 3}}, {{2, 2}});
    const int32_t count = model.addTensor(type, {});
    const int32_t indices = model.addTensor(TensorType::INT32, {2, 2});
    model.addOperator(BuiltinOperator::TOPK_V2, {0, count}, {1, indices});
    model.setArguments({0, count}, {1, indices});
    if (type == TensorType::INT32) {
      EXPECT_THAT(translate(model), ElementsAre("TOPK_V2 t0 t2 -> t1 t3"));
    } else {
      EXPECT_THAT(translate(model), ElementsAre("CAST t2 -> %", "TOPK_V2 t0 % -> t1 t3"));
    }
  }
}

TEST(ReduceTranslators, Segments) {
  const std::pair<BuiltinOperator, std::string> cases[] = {
      {BuiltinOperator::UNSORTED_SEGMENT_PROD, "UNSORTED_SEGMENT_PROD t0 t2 t3 -> t1"},
      {BuiltinOperator::UNSORTED_SEGMENT_MAX, "UNSORTED_SEGMENT_MAX t0 t2 t3 -> t1"},
      {BuiltinOperator::UNSORTED_SEGMENT_SUM, "UNSORTED_SEGMENT_SUM t0 t2 t3 -> t1"},
      {BuiltinOperator::UNSORTED_SEGMENT_MIN, "UNSORTED_SEGMENT_MIN t0 t2 t3 -> t1"}};
  for (const auto& [code, line] : cases) {
    FloatModel model({{3, 2}}, {{4, 2}});
    const int32_t numbers = model.addTensor(TensorType::INT32, {3});
    const int32_t count = model.addTensor(TensorType::INT32, {});
    model.addOperator(code, {0, numbers, count}, {1});
    model.setArguments({0, numbers, count}, {1});
    EXPECT_THAT(translate(model), ElementsAre(line));
    model.subgraph().operators[0]->inputs.pop_back();
    EXPECT_NE(errorOf(model), "imported");
  }
}

// The output's dimensions are known only when the axes are.
TEST(ReduceTranslators, AxesThatAreInputsLeaveAnUndeclaredRankUnknown) {
  for (const bool isConstant : {false, true}) {
    FloatModel model({{2, 3}}, {{}});
    const int32_t axes = isConstant ? model.ints({0, 1}) : model.addTensor(TensorType::INT32, {1});
    model.addOperator(BuiltinOperator::SUM, {0, axes}, {1}, schema::ReducerOptionsT());
    model.setArguments(isConstant ? std::vector<int32_t>{0} : std::vector{0, axes}, {1});
    const ImportedGraph imported = import(model);
    const graph::Subgraph& main = imported.model->main();
    EXPECT_EQ(main.operands[main.operations.at(0).outputs[0]].isRankZeroTensor, isConstant);
  }
}

}  // namespace
}  // namespace hearth::tflite
