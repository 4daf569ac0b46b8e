// SPDX-License-Identifier: Apache-2.0
#include "tools/duration.h"

#include <gtest/gtest.h>

namespace hearth::tools {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(Duration, UnitsAreRead) {
  EXPECT_EQ(parseDuration("T", "0s").value(), seconds(0));
  EXPECT_EQ(parseDuration("T", "90s").value(), seconds(90));
  EXPECT_EQ(parseDuration("T", "5m").value(), minutes(5));
  EXPECT_EQ(parseDuration("T", "12h").value(), hours(12));
  EXPECT_EQ(parseDuration("T", "7d").value(), hours(168));
  EXPECT_EQ(parseDuration("T", "2w").value(), hours(336));
}

TEST(Duration, TextThatIsNoTimeIsAnError) {
  for (const char* text :
       {"", "d", "7", "-1d", "1.5h", "7 d", "7y", "99999999999999999999s", "9999999999w"}) {
    const auto parsed = parseDuration("--older-than", text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().message().find("--older-than"), std::string::npos);
  }
}

TEST(Duration, AgesAreShort) {
  EXPECT_EQ(ageText(seconds(-5)), "0 s");
  EXPECT_EQ(ageText(seconds(119)), "119 s");
  EXPECT_EQ(ageText(seconds(120)), "2 min");
  EXPECT_EQ(ageText(hours(3)), "3 h");
  EXPECT_EQ(ageText(hours(49)), "2 d");
}

}  // namespace
}  // namespace hearth::tools
