// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

TEST(RmsNormTest, EqualsTheReference) {
  for (const uint32_t size : {1u, 3u, 31u, 64u, 100u, 2048u}) {
    for (const bool hasScale : {false, true}) {
      ModelBuilder builder;
      const Dimensions dimensions = {3, 7, size};
      const uint32_t data = builder.input(kFloat, dimensions);
      const uint32_t scale = hasScale ? builder.constant(kFloat, {size}, randomFloats(size, 2))
                                      : builder.omitted(kFloat);
      builder.operation(OperationType::kRmsNorm, {data, scale, builder.scalar(1e-6f)},
                        {builder.output(kFloat, dimensions)});
      EXPECT_EQ(
          differenceFromReference(builder.model(), {floatsFor(dimensions, 1, 5.0f)}, "own", 1e-6f),
          "")
          << size;
    }
  }
}

struct GroupNormCase {
  Dimensions dimensions;
  int32_t groups;
  int32_t axis;
  bool hasScale, hasOffset;
};

class GroupNormTest : public testing::TestWithParam<GroupNormCase> {};

TEST_P(GroupNormTest, EqualsTheReference) {
  const GroupNormCase& c = GetParam();
  ModelBuilder builder;
  const uint32_t data = builder.input(kFloat, c.dimensions);
  const size_t rank = c.dimensions.size();
  const uint32_t channels =
      c.dimensions[static_cast<size_t>(c.axis < 0 ? c.axis + static_cast<int32_t>(rank) : c.axis)];
  const auto perChannel = [&](bool isGiven, unsigned seed) {
    return isGiven ? builder.constant(kFloat, {channels}, randomFloats(channels, seed))
                   : builder.omitted(kFloat);
  };
  const uint32_t scale = perChannel(c.hasScale, 2);
  const uint32_t offset = perChannel(c.hasOffset, 3);
  builder.operation(OperationType::kGroupNorm,
                    {data, scale, offset, builder.scalar(1e-5f), builder.scalar(c.groups),
                     builder.scalar(c.axis)},
                    {builder.output(kFloat, c.dimensions)});
  std::vector<float> values = randomFloats(countOf(c.dimensions), 1);
  // A mean far from 0 shows where a kernel loses precision.
  for (float& value : values) value += 300.0f;
  EXPECT_EQ(differenceFromReference(builder.model(), {bytesOf(values)}, "own", 2e-5f), "");
}

INSTANTIATE_TEST_SUITE_P(Shapes, GroupNormTest,
                         testing::Values(GroupNormCase{{1, 8, 8, 20}, 4, -1, true, true},
                                         GroupNormCase{{2, 5, 33}, 3, 2, true, false},
                                         GroupNormCase{{1, 40, 40, 320}, 32, 3, false, true},
                                         GroupNormCase{{2, 12, 5, 7}, 4, 1, true, true},
                                         GroupNormCase{{1, 6, 64, 64}, 1, 1, false, false},
                                         GroupNormCase{{1, 4}, 2, 1, true, true},
                                         GroupNormCase{{3, 9, 6, 2}, 3, 2, true, true}));

}  // namespace
}  // namespace hearth::cpu
