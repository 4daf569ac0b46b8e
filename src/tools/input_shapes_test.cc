// SPDX-License-Identifier: Apache-2.0
#include "tools/input_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(InputShapesTest, ReadsNamesAndSizes) {
  const auto shapes = parseInputShapes({"image=4,224,224,3", "scope/x=1:0=7", "=2,3"});
  ASSERT_TRUE(shapes) << shapes.error().sentence;
  EXPECT_THAT(*shapes, ElementsAre(Pair("", ElementsAre(2u, 3u)),
                                   Pair("image", ElementsAre(4u, 224u, 224u, 3u)),
                                   Pair("scope/x=1:0", ElementsAre(7u))));
  EXPECT_THAT(*parseInputShapes({"5,6"}), ElementsAre(Pair("", ElementsAre(5u, 6u))));
}

TEST(InputShapesTest, RefusesWhatIsNoShape) {
  for (const char* text : {"image", "image=", "image=1,,2", "image=1,", "image=0", "image=-1",
                           "image=1x2", "image=4294967296", "image= 4"}) {
    const auto shapes = parseInputShapes({text});
    ASSERT_FALSE(shapes) << text;
    EXPECT_EQ(shapes.error().exitCode, kExitUsage);
    EXPECT_THAT(shapes.error().sentence, HasSubstr(text));
  }
  EXPECT_FALSE(parseInputShapes({"a=1", "a=2"}));
}

}  // namespace
}  // namespace hearth::tools
