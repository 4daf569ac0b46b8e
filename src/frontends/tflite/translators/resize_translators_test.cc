// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/tflite/testing/import_testing.h"

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

}  // namespace
}  // namespace hearth::tflite
