// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/tflite/testing/import_testing.h"

namespace hearth::tflite {
namespace {

TEST(ShapeTranslators, ReshapeForms) {
  FloatModel model({{2, 3}}, {{3, 2}, {6}});
  const int32_t shape = model.ints({3, 2});
  model.addOperator(BuiltinOperator::RESHAPE, {0, shape}, {1});
  schema::ReshapeOptionsT options;
  options.new_shape = {-1};
  model.addOperator(BuiltinOperator::RESHAPE, {0}, {2}, options);
  EXPECT_THAT(translate(model), ElementsAre("RESHAPE t0 t3 -> t1", "RESHAPE t0 {-1} -> t2"));

  // The file says that the result is a scalar.
  FloatModel scalar({{1}}, {{}});
  scalar.subgraph().tensors[1]->has_rank = true;
  scalar.addOperator(BuiltinOperator::RESHAPE, {0}, {1}, options);
  EXPECT_THAT(translate(scalar), ElementsAre("SQUEEZE t0 - -> t1"));
  // It leaves the rank open, and the options have a shape of one dimension.
  scalar.subgraph().tensors[1]->has_rank = false;
  EXPECT_THAT(translate(scalar), ElementsAre("RESHAPE t0 {-1} -> t1"));
}

// Some converters write the shape as a matrix of one row.
TEST(ShapeTranslators, ReshapeToAMatrix) {
  FloatModel constant({{2, 3}}, {{3, 2}});
  const int32_t shape = constant.addConstant<int32_t>(TensorType::INT32, {1, 2}, {3, 2});
  constant.addOperator(BuiltinOperator::RESHAPE, {0, shape}, {1});
  EXPECT_THAT(translate(constant), ElementsAre("RESHAPE t0 {3,2} -> t1"));
  schema::ReshapeOptionsT options;
  options.new_shape = {-1, 2};
  constant.subgraph().operators[0]->builtin_options.Set(options);
  EXPECT_THAT(translate(constant), ElementsAre("RESHAPE t0 {-1,2} -> t1"));

  FloatModel open({{2, 3}}, {{3, 2}});
  const int32_t numbers = open.addTensor(TensorType::INT32, {1, 2});
  open.addOperator(BuiltinOperator::RESHAPE, {0, numbers}, {1});
  open.setArguments({0, numbers}, {1});
  EXPECT_THAT(translate(open), ElementsAre("RESHAPE t2 {-1} -> %", "RESHAPE t0 % -> t1"));
}

TEST(ShapeTranslators, DimensionsOfOne) {
  FloatModel model({{1, 2, 1}}, {{2}, {1, 2}, {1, 1, 2, 1}});
  schema::SqueezeOptionsT some;
  some.squeeze_dims = {-1};
  model.addOperator(BuiltinOperator::SQUEEZE, {0}, {1});
  model.addOperator(BuiltinOperator::SQUEEZE, {0}, {2}, some);
  const int32_t axis = model.ints({0});
  model.addOperator(BuiltinOperator::EXPAND_DIMS, {0, axis}, {3});
  EXPECT_THAT(translate(model),
              ElementsAre("SQUEEZE t0 - -> t1", "SQUEEZE t0 {2} -> t2", "EXPAND_DIMS t0 0 -> t3"));
}

TEST(ShapeTranslators, Joining) {
  FloatModel model({{2, 2}, {2, 3}}, {{2, 5}});
  schema::ConcatenationOptionsT concatenation;
  concatenation.axis = -1;
  concatenation.fused_activation_function = schema::ActivationFunctionType::RELU;
  model.addOperator(BuiltinOperator::CONCATENATION, {0, 1}, {2}, concatenation);
  EXPECT_THAT(translate(model), ElementsAre("CONCATENATION t0 t1 1 -> %", "RELU % -> t2"));

  FloatModel pack({{2, 2}, {2, 2}}, {{2, 2, 2}});
  schema::PackOptionsT options;
  options.axis = 1;
  options.values_count = 2;
  pack.addOperator(BuiltinOperator::PACK, {0, 1}, {2}, options);
  EXPECT_THAT(translate(pack), ElementsAre("PACK 1 t0 t1 -> t2"));
}

TEST(ShapeTranslators, NothingToJoinIsRefused) {
  FloatModel model({{2, 2}}, {{2, 2}});
  model.addOperator(BuiltinOperator::CONCATENATION, {}, {1}, schema::ConcatenationOptionsT());
  EXPECT_THAT(errorOf(model), testing::HasSubstr("It has no input."));
}

TEST(ShapeTranslators, Splitting) {
  FloatModel split({{2, 6}}, {{2, 3}, {2, 3}});
  const int32_t axis = split.addConstant<int32_t>(TensorType::INT32, {}, {-1});
  schema::SplitOptionsT options;
  options.num_splits = 2;
  split.addOperator(BuiltinOperator::SPLIT, {axis, 0}, {1, 2}, options);
  EXPECT_THAT(translate(split), ElementsAre("SPLIT t0 1 2 -> t1 t2"));

  FloatModel parts({{2, 6}}, {{2, 1}, {2, 5}});
  const int32_t sizes = parts.ints({1, -1});
  const int32_t dimension = parts.addConstant<int32_t>(TensorType::INT32, {}, {1});
  parts.addOperator(BuiltinOperator::SPLIT_V, {0, sizes, dimension}, {1, 2});
  EXPECT_THAT(translate(parts),
              ElementsAre("SLICE t0 {0,0} {-1,1} -> t1", "SLICE t0 {0,1} {-1,5} -> t2"));

  FloatModel unpack({{2, 3}}, {{3}, {3}});
  schema::UnpackOptionsT number;
  number.num = 2;
  unpack.addOperator(BuiltinOperator::UNPACK, {0}, {1, 2}, number);
  EXPECT_THAT(translate(unpack),
              ElementsAre("SPLIT t0 0 2 -> % %", "SQUEEZE % {0} -> t1", "SQUEEZE % {0} -> t2"));
}

TEST(ShapeTranslators, SlicesWithWideLimits) {
  FloatModel model({{4, 4}}, {{2, 2}});
  const int32_t begin = model.addConstant<int64_t>(TensorType::INT64, {2}, {1, 2});
  const int32_t size = model.addConstant<int64_t>(TensorType::INT64, {2}, {2, -1});
  model.addOperator(BuiltinOperator::SLICE, {0, begin, size}, {1});
  EXPECT_THAT(translate(model), ElementsAre("SLICE t0 {1,2} {2,-1} -> t1"));
}

TEST(ShapeTranslators, StridedSlices) {
  FloatModel model({{4, 4}}, {{4}});
  const int32_t begin = model.ints({1, 0});
  const int32_t end = model.ints({2, 4});
  const int32_t strides = model.ints({1, 1});
  schema::StridedSliceOptionsT options;
  options.begin_mask = 2;
  options.end_mask = 2;
  options.shrink_axis_mask = 1;
  model.addOperator(BuiltinOperator::STRIDED_SLICE, {0, begin, end, strides}, {1}, options);
  EXPECT_THAT(translate(model), ElementsAre("STRIDED_SLICE t0 t2 t3 t4 2 2 1 -> t1"));
  options.new_axis_mask = 1;
  model.subgraph().operators[0]->builtin_options.Set(options);
  EXPECT_THAT(errorOf(model), HasSubstr("new axis mask 1"));

  FloatModel shorter({{4, 4}}, {{1, 4}});
  const int32_t one = shorter.ints({1});
  const int32_t two = shorter.ints({2});
  shorter.addOperator(BuiltinOperator::STRIDED_SLICE, {0, one, two, one}, {1});
  EXPECT_THAT(translate(shorter), ElementsAre("STRIDED_SLICE t0 t2 t3 t2 0 0 0 -> t1"));
}

TEST(ShapeTranslators, PaddingAndOthers) {
  FloatModel model({{2, 2}}, {{4, 4}, {4, 4}, {4, 4}, {2, 2}, {4, 4}, {2, 2}});
  const int32_t paddings = model.addConstant<int32_t>(TensorType::INT32, {2, 2}, {1, 1, 1, 1});
  const int32_t value = model.addConstant<float>(TensorType::FLOAT32, {1}, {0.5f});
  const int32_t both = model.ints({1, 0});
  const int32_t twice = model.ints({2, 2});
  schema::MirrorPadOptionsT mirror;
  mirror.mode = schema::MirrorPadMode::SYMMETRIC;
  model.addOperator(BuiltinOperator::PAD, {0, paddings}, {1});
  model.addOperator(BuiltinOperator::PADV2, {0, paddings, value}, {2});
  model.addOperator(BuiltinOperator::MIRROR_PAD, {0, paddings}, {3}, mirror);
  model.addOperator(BuiltinOperator::TRANSPOSE, {0, both}, {4});
  model.addOperator(BuiltinOperator::TILE, {0, twice}, {5});
  model.addOperator(BuiltinOperator::REVERSE_V2, {0, both}, {6});
  EXPECT_THAT(translate(model),
              ElementsAre("PAD t0 t7 -> t1", "PAD_V2 t0 t7 0.5f -> t2", "MIRROR_PAD t0 t7 1 -> t3",
                          "TRANSPOSE t0 t9 -> t4", "TILE t0 t10 -> t5", "REVERSE t0 {1} -> %",
                          "REVERSE % {0} -> t6"));
}

TEST(ShapeTranslators, QuantisedPadValueIsAnInteger) {
  ModelWriter model;
  model.addTensor(TensorType::INT8, {2}, 0.5f, 3);
  model.addTensor(TensorType::INT8, {4}, 0.5f, 3);
  const int32_t paddings = model.addConstant<int32_t>(TensorType::INT32, {1, 2}, {1, 1});
  const int32_t value = model.addConstant<int8_t>(TensorType::INT8, {1}, {-7}, 0.5f, 3);
  model.addOperator(BuiltinOperator::PADV2, {0, paddings, value}, {1});
  model.setArguments({0}, {1});
  EXPECT_THAT(translate(model), ElementsAre("PAD_V2 t0 t2 -7 -> t1"));
}

TEST(ShapeTranslators, Fill) {
  FloatModel model({}, {{2, 3}});
  const int32_t shape = model.ints({2, 3});
  const int32_t value = model.addConstant<float>(TensorType::FLOAT32, {}, {1.5f});
  model.addOperator(BuiltinOperator::FILL, {shape, value}, {0});
  EXPECT_THAT(translate(model), ElementsAre("FILL t1 t2 -> t0"));
}

TEST(ShapeTranslators, DiagonalsAndBits) {
  FloatModel model({{2, 2}, {2}}, {{2, 2}, {2, 2}});
  const int32_t bits = model.addTensor(TensorType::INT32, {2, 2});
  model.addOperator(BuiltinOperator::MATRIX_DIAG, {1}, {2});
  model.addOperator(BuiltinOperator::MATRIX_SET_DIAG, {0, 1}, {3});
  model.addOperator(BuiltinOperator::BITCAST, {0}, {bits});
  model.setArguments({0, 1}, {2, 3, bits});
  EXPECT_THAT(translate(model), ElementsAre("MATRIX_DIAG t1 -> t2", "MATRIX_SET_DIAG t0 t1 -> t3",
                                            "BITCAST t0 -> t4"));
}

TEST(ShapeTranslators, ReverseRescalesWhatDiffersFromItsOutput) {
  ModelWriter model;
  model.addTensor(TensorType::INT8, {2, 3}, 0.5f, 3);
  model.addTensor(TensorType::INT8, {2, 3}, 0.25f);
  model.addOperator(BuiltinOperator::REVERSE_V2, {0, model.ints({1})}, {1});
  model.setArguments({0}, {1});
  EXPECT_THAT(translate(model), ElementsAre("QUANTIZE t0 -> %", "REVERSE % {1} -> t1"));
}

}  // namespace
}  // namespace hearth::tflite
