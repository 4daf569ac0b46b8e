// SPDX-License-Identifier: Apache-2.0
// Files of old converters, in which the shapes of most tensors are [].
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/tflite/testing/import_testing.h"

namespace hearth::tflite {
namespace {

using graph::Dimensions;

// Adds a picture, its shape as PACK or STRIDED_SLICE give it, and the picture in that size.
ModelWriter resizing() {
  ModelWriter model;
  model.addTensor(TensorType::FLOAT32, {1, 2, 3, 1});
  for (int i = 0; i < 3; ++i) model.addTensor(TensorType::INT32, {});
  model.addTensor(TensorType::FLOAT32, {});
  model.addOperator(BuiltinOperator::SHAPE, {0}, {1});
  schema::StridedSliceOptionsT options;
  model.addOperator(BuiltinOperator::STRIDED_SLICE,
                    {1, model.ints({1}), model.ints({3}), model.ints({1})}, {2}, options);
  model.addOperator(BuiltinOperator::MUL, {2, model.ints({2, 3})}, {3});
  model.addOperator(BuiltinOperator::RESIZE_NEAREST_NEIGHBOR, {0, 3}, {4});
  model.setArguments({0}, {4});
  return model;
}

TEST(UnsaidShapes, TheOperationSaysTheShape) {
  const ImportedGraph imported = import(resizing());
  EXPECT_THAT(linesOf(*imported.model), ElementsAre("RESIZE_NEAREST_NEIGHBOR t0 9 4 false -> t4"));
  ASSERT_EQ(imported.outputs.size(), 1u);
  EXPECT_EQ(imported.outputs[0].dimensions, (Dimensions{1, 4, 9, 1}));
  EXPECT_FALSE(imported.outputs[0].isRankZeroTensor);
}

// Operations whose output must have a certain rank, and one whose axis counts from the end.
TEST(UnsaidShapes, LayersBehindIt) {
  ModelWriter model = resizing();
  const int32_t filter = model.addConstant<float>(TensorType::FLOAT32, {2, 1, 1, 1}, {1.0f, 2.0f});
  const int32_t bias = model.addConstant<float>(TensorType::FLOAT32, {2}, {0.0f, 1.0f});
  const int32_t layer = model.addTensor(TensorType::FLOAT32, {});
  schema::Conv2DOptionsT options;
  options.stride_h = options.stride_w = 1;
  options.padding = schema::Padding::VALID;
  model.addOperator(BuiltinOperator::CONV_2D, {4, filter, bias}, {layer}, options);
  const int32_t joined = model.addTensor(TensorType::FLOAT32, {});
  schema::ConcatenationOptionsT concatenation;
  concatenation.axis = -1;
  model.addOperator(BuiltinOperator::CONCATENATION, {layer, 4}, {joined}, concatenation);
  model.setArguments({0}, {joined});
  EXPECT_EQ(import(model).outputs[0].dimensions, (Dimensions{1, 4, 9, 3}));
}

// A shape that is computed and a result as well.
TEST(UnsaidShapes, ConstantsAsOutputs) {
  ModelWriter model = resizing();
  model.setArguments({0}, {3, 4});
  const ImportedGraph imported = import(model);
  EXPECT_EQ(imported.outputs[0].dimensions, Dimensions{2});
  EXPECT_EQ(imported.outputs[1].dimensions, (Dimensions{1, 4, 9, 1}));
}

TEST(UnsaidShapes, ScalarsStayScalars) {
  ModelWriter model;
  model.addTensor(TensorType::FLOAT32, {});
  model.addTensor(TensorType::FLOAT32, {2, 3});
  for (int i = 0; i < 3; ++i) model.addTensor(TensorType::FLOAT32, {});
  model.addOperator(BuiltinOperator::EXP, {0}, {2});
  model.addOperator(BuiltinOperator::MEAN, {1, model.ints({0, 1})}, {3});
  model.addOperator(BuiltinOperator::MUL, {1, 3}, {4});
  model.setArguments({0, 1}, {2, 3, 4});
  const ImportedGraph imported = import(model);
  EXPECT_TRUE(imported.inputs[0].isRankZeroTensor);
  EXPECT_TRUE(imported.outputs[0].isRankZeroTensor);
  EXPECT_TRUE(imported.outputs[1].isRankZeroTensor);
  EXPECT_EQ(imported.outputs[2].dimensions, (Dimensions{2, 3}));
}

// A newer converter says that the tensor is a scalar.
TEST(UnsaidShapes, RanksThatTheFileSaysCount) {
  ModelWriter model;
  model.addTensor(TensorType::FLOAT32, {2, 3});
  model.addTensor(TensorType::FLOAT32, {});
  model.subgraph().tensors[1]->has_rank = true;
  model.addOperator(BuiltinOperator::EXP, {0}, {1});
  model.setArguments({0}, {1});
  EXPECT_TRUE(import(model).outputs[0].isRankZeroTensor);
}

TEST(UnsaidShapes, ReshapeTakesItsArgument) {
  for (const bool isOption : {true, false}) {
    ModelWriter model;
    model.addTensor(TensorType::FLOAT32, {2, 3});
    model.addTensor(TensorType::FLOAT32, {});
    schema::ReshapeOptionsT options;
    if (isOption) options.new_shape = {3, -1};
    if (isOption)
      model.addOperator(BuiltinOperator::RESHAPE, {0}, {1}, options);
    else
      model.addOperator(BuiltinOperator::RESHAPE, {0, model.ints({3, -1})}, {1}, options);
    model.setArguments({0}, {1});
    EXPECT_EQ(import(model).outputs[0].dimensions, (Dimensions{3, 2})) << isOption;
  }
}

// A shape that depends on a value of the run is unknown, and so are those computed from it.
TEST(UnsaidShapes, ValuesOfTheRunLeaveShapesUnknown) {
  ModelWriter model;
  model.addTensor(TensorType::FLOAT32, {1, 2, 3, 1});
  model.addTensor(TensorType::INT32, {2});
  for (int i = 0; i < 2; ++i) model.addTensor(TensorType::FLOAT32, {});
  model.addOperator(BuiltinOperator::RESIZE_NEAREST_NEIGHBOR, {0, 1}, {2});
  model.addOperator(BuiltinOperator::EXP, {2}, {3});
  model.setArguments({0, 1}, {3});
  const ImportedGraph imported = import(model);
  EXPECT_FALSE(imported.outputs[0].isRankZeroTensor);
  EXPECT_EQ(imported.outputs[0].dimensions, Dimensions());
}

}  // namespace
}  // namespace hearth::tflite
