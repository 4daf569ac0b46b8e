// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/tflite/testing/import_testing.h"
#include "ops/interpreter.h"

namespace hearth::tflite {
namespace {

TEST(ResizeTranslators, SizesAreScalars) {
  FloatModel model({{1, 4, 4, 2}}, {{1, 6, 8, 2}, {1, 6, 8, 2}});
  const int32_t size = model.ints({6, 8});
  schema::ResizeBilinearOptionsT bilinear;
  bilinear.half_pixel_centers = true;
  model.addOperator(BuiltinOperator::RESIZE_BILINEAR, {0, size}, {1}, bilinear);
  model.addOperator(BuiltinOperator::RESIZE_NEAREST_NEIGHBOR, {0, size}, {2});
  EXPECT_THAT(translate(model), ElementsAre("RESIZE_BILINEAR t0 8 6 false false true -> t1",
                                            "RESIZE_NEAREST_NEIGHBOR t0 8 6 false -> t2"));
  model.tensor(size).buffer = 0;
  model.setArguments({0, size}, {1, 2});
  EXPECT_THAT(translate(model),
              ElementsAre("SLICE t3 {0} {1} -> %", "SLICE t3 {1} {1} -> %",
                          "RESIZE_BILINEAR t0 % % false false true -> t1", "SLICE t3 {0} {1} -> %",
                          "SLICE t3 {1} {1} -> %", "RESIZE_NEAREST_NEIGHBOR t0 % % false -> t2"));
}

TEST(ResizeTranslators, SpaceDepthAndBatch) {
  FloatModel model({{1, 4, 4, 4}}, {{1, 8, 8, 1}, {1, 2, 2, 16}, {4, 2, 2, 4}});
  schema::DepthToSpaceOptionsT depth;
  depth.block_size = 2;
  schema::SpaceToDepthOptionsT space;
  space.block_size = 2;
  model.addOperator(BuiltinOperator::DEPTH_TO_SPACE, {0}, {1}, depth);
  model.addOperator(BuiltinOperator::SPACE_TO_DEPTH, {0}, {2}, space);
  const int32_t blocks = model.ints({2, 2});
  const int32_t paddings = model.addConstant<int32_t>(TensorType::INT32, {2, 2}, {0, 0, 0, 0});
  model.addOperator(BuiltinOperator::SPACE_TO_BATCH_ND, {0, blocks, paddings}, {3});
  EXPECT_THAT(translate(model),
              ElementsAre("DEPTH_TO_SPACE t0 2 -> t1", "SPACE_TO_DEPTH t0 2 -> t2",
                          "SPACE_TO_BATCH_ND t0 t4 t5 -> t3"));
}

TEST(ResizeTranslators, CropsAreASlice) {
  FloatModel model({{4, 2, 2, 1}}, {{1, 3, 2, 1}});
  const int32_t blocks = model.ints({2, 2});
  const int32_t crops = model.addConstant<int32_t>(TensorType::INT32, {2, 2}, {1, 0, 1, 1});
  model.addOperator(BuiltinOperator::BATCH_TO_SPACE_ND, {0, blocks, crops}, {1});
  EXPECT_THAT(translate(model),
              ElementsAre("BATCH_TO_SPACE_ND t0 t2 -> %", "SLICE % {0,1,1,0} {-1,3,2,-1} -> t1"));
}

TEST(ResizeTranslators, CropsOfTheRun) {
  FloatModel model({{4, 2, 2, 1}}, {{1, 0, 0, 1}});
  model.tensor(1).shape_signature = {1, -1, -1, 1};
  const int32_t blocks = model.ints({2, 2});
  const int32_t crops = model.addTensor(TensorType::INT32, {2, 2});
  model.addOperator(BuiltinOperator::BATCH_TO_SPACE_ND, {0, blocks, crops}, {1});
  model.setArguments({0, crops}, {1});
  const ImportedGraph imported = import(model);
  EXPECT_THAT(linesOf(*imported.model),
              ElementsAre("BATCH_TO_SPACE_ND t0 t2 -> %", "SLICE t3 {0,0} {2,1} -> %",
                          "RESHAPE % {2} -> %", "PAD % {1,1} -> %", "SLICE t3 {0,1} {2,1} -> %",
                          "RESHAPE % {2} -> %", "PAD % {1,1} -> %", "SHAPE % -> %",
                          "SUB % % 0 -> %", "STRIDED_SLICE % % % {1,1,1,1} 0 0 0 -> t1"));

  auto interpreter = ops::Interpreter::create(imported.model, {});
  ASSERT_TRUE(interpreter) << interpreter.error().toString();
  // The four batches hold the pixels of even and odd rows and columns, so that the image counts up
  // from 0.
  std::vector<float> data = {0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15};
  std::vector<int32_t> borders = {1, 0, 1, 1};
  std::vector<float> result(6);
  const ops::RunResult run =
      (*interpreter)
          ->run({{data.data(), 64, {4, 2, 2, 1}, true}, {borders.data(), 16, {2, 2}, true}},
                {{result.data(), 24, {}, true}}, {});
  ASSERT_TRUE(run.status) << run.status.error().toString();
  EXPECT_EQ(run.outputShapes[0].dimensions, (graph::Dimensions{1, 3, 2, 1}));
  EXPECT_THAT(result, ElementsAre(5, 6, 9, 10, 13, 14));
}

TEST(ResizeTranslators, CropsOfTheRunNeedARank) {
  FloatModel model({{4, 2}}, {{1, 2}});
  const int32_t blocks = model.ints({2});
  const int32_t crops = model.addTensor(TensorType::INT32, {1, 2});
  model.addOperator(BuiltinOperator::BATCH_TO_SPACE_ND, {0, blocks, crops}, {1});
  model.setArguments({0, crops}, {1});
  EXPECT_THAT(errorOf(model), HasSubstr("rank from 3 on"));
}

}  // namespace
}  // namespace hearth::tflite
