// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "ops/testing/operation_builder.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;

TEST(Conv3dTest, SameAndValid) {
  const auto run = [](int32_t padding) {
    OperationBuilder builder(OperationType::kConv3d);
    // One channel; the filter adds a pixel to its right neighbour.
    builder.input({1, 1, 2, 2, 1}, std::vector<float>{1, 2, 3, 4})
        .input({1, 1, 2, 1, 2}, std::vector<float>{1, 10, 1, 0})
        .input({2}, std::vector<float>{0.5f, 0})
        .scalars({padding, 1, 1, 1, 1, 1, 1, 0})
        .output();
    EXPECT_TRUE(builder.run());
    return builder.result<float>();
  };
  EXPECT_THAT(run(2), ElementsAre(3.5f, 10, 7.5f, 30));
  EXPECT_THAT(run(1), ElementsAre(3.5f, 10, 2.5f, 20, 7.5f, 30, 4.5f, 40));
}

// One channel of two elements in a row; the filter is {1, 10}, the last stride 2.
std::vector<float> transposed(int32_t padding, const std::vector<int32_t>& shape) {
  OperationBuilder builder(OperationType::kConv3dTranspose);
  builder.input({1, 1, 1, 2, 1}, std::vector<float>{1, 2})
      .input({1, 1, 2, 1, 1}, std::vector<float>{1, 10})
      .input({1}, std::vector<float>{0.5f})
      .scalars({padding, 1, 1, 2, 1, 1, 1, 0})
      .input({static_cast<uint32_t>(shape.size())}, shape)
      .output();
  return builder.run() ? builder.result<float>() : std::vector<float>();
}

TEST(Conv3dTransposeTest, EachElementAddsTheFilter) {
  EXPECT_THAT(transposed(2, {1, 1, 1, 4, 1}), ElementsAre(1.5f, 10.5f, 2.5f, 20.5f));
  // The last output element lies behind all windows.
  EXPECT_THAT(transposed(2, {1, 1, 1, 5, 1}), ElementsAre(1.5f, 10.5f, 2.5f, 20.5f, 0.5f));
  // With SAME, windows extend past the end.
  EXPECT_THAT(transposed(1, {1, 1, 1, 3, 1}), ElementsAre(1.5f, 10.5f, 2.5f));
}

TEST(Conv3dTransposeTest, ShapesThatDoNotBelongTogetherAreErrors) {
  EXPECT_THAT(transposed(2, {1, 1, 1, 6, 1}), ElementsAre());
  EXPECT_THAT(transposed(2, {1, 1, 1, 4, 2}), ElementsAre());
  EXPECT_THAT(transposed(2, {2, 1, 1, 4, 1}), ElementsAre());
  EXPECT_THAT(transposed(2, {1, 1, 4, 1}), ElementsAre());
  EXPECT_THAT(transposed(2, {1, 1, 1, -4, 1}), ElementsAre());
  EXPECT_THAT(transposed(3, {1, 1, 1, 4, 1}), ElementsAre());
}

// OperationBuilder compares with the reference kernel, so channels, planes and rows must not be
// confused.
TEST(Conv3dTransposeTest, ManyChannels) {
  OperationBuilder builder(OperationType::kConv3dTranspose);
  std::vector<float> data(2 * 2 * 3 * 2 * 3);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 7) - 3.0f;
  std::vector<float> filter(2 * 3 * 2 * 5 * 3);
  for (size_t i = 0; i < filter.size(); ++i) filter[i] = static_cast<float>(i % 11) - 5.0f;
  builder.input({2, 2, 3, 2, 3}, data)
      .input({2, 3, 2, 5, 3}, filter)
      .omitted(OperandType::kTensorFloat32)
      .scalars({1, 2, 1, 3, 1, 2, 1, 1})
      .input({5}, std::vector<int32_t>{2, 4, 3, 6, 5})
      .output();
  EXPECT_TRUE(builder.run());
}

}  // namespace
}  // namespace hearth::ops
