// SPDX-License-Identifier: Apache-2.0
#include "hal/output_shapes.h"

#include <gtest/gtest.h>

namespace hearth::hal {
namespace {

TEST(OutputShapesTest, CopiesShareAListUntilOneChanges) {
  const OutputShapes none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.begin(), none.end());
  EXPECT_TRUE(OutputShapes().isCopyOf(none));

  const OutputShapes first = {{{2, 3}, true}, {{4}, false}};
  OutputShapes second = first;
  EXPECT_TRUE(second.isCopyOf(first));
  second.change()[0].dimensions = {7};
  EXPECT_FALSE(second.isCopyOf(first));
  EXPECT_EQ(first[0].dimensions, (graph::Dimensions{2, 3}));
  EXPECT_EQ(second[0].dimensions, graph::Dimensions{7});
  EXPECT_FALSE(second[1].isSufficient);

  OutputShapes third = second;
  third.push_back({{1}, true});
  EXPECT_EQ(second.size(), 2u);
  ASSERT_EQ(third.size(), 3u);
  EXPECT_EQ(third[2].dimensions, graph::Dimensions{1});
  third.clear();
  EXPECT_TRUE(third.empty());
  third.push_back({{5}, true});
  EXPECT_EQ(third.size(), 1u);
}

}  // namespace
}  // namespace hearth::hal
