// SPDX-License-Identifier: Apache-2.0
#include "tools/text_table.h"

#include <gtest/gtest.h>

#include "tools/latency.h"

namespace hearth::tools {
namespace {

TEST(TextTableTest, AlignsColumnsOfUtf8) {
  TextTable table({"name", "n"}, "lr");
  EXPECT_TRUE(table.empty());
  table.add({"é", "10"});
  table.add({"long name", "5"});
  EXPECT_EQ(table.toString(),
            "  name        n\n"
            "  ---------  --\n"
            "  é          10\n"
            "  long name   5\n");
}

TEST(TextTableTest, SizesAndTimes) {
  EXPECT_EQ(bytesText(0), "0 B");
  EXPECT_EQ(bytesText(1023), "1023 B");
  EXPECT_EQ(bytesText(1536), "1.5 KiB");
  EXPECT_EQ(bytesText(uint64_t{300} << 20), "300 MiB");
  EXPECT_EQ(bytesText(UINT64_MAX), "16.0 EiB");
  EXPECT_EQ(millisecondsText(0.1234), "0.123 ms");
  EXPECT_EQ(millisecondsText(1.234), "1.23 ms");
  EXPECT_EQ(millisecondsText(12.34), "12.3 ms");
  EXPECT_EQ(millisecondsText(12345), "12.3 s");
}

TEST(TextTableTest, BarsGrowInEighths) {
  EXPECT_EQ(bar(0, 4), "");
  EXPECT_EQ(bar(-1, 4), "");
  EXPECT_EQ(bar(0.5, 4), "██");
  EXPECT_EQ(bar(0.53125, 4), "██▏");
  EXPECT_EQ(bar(7, 2), "██");
}

TEST(TextTableTest, KeepsTerminalsSafe) {
  EXPECT_EQ(printable("a\x1b[31mb\n\x7f"), "a?[31mb??");
  EXPECT_EQ(printable("é"), "é");
}

TEST(LatencyTest, PercentilesAreNearestRank) {
  EXPECT_FALSE(percentile({}, 50));
  EXPECT_EQ(percentile({7}, 99), 7);
  const std::vector<double> values = {4, 1, 3, 2, 5, 6, 7, 8, 9, 10};
  EXPECT_EQ(percentile(values, 50), 5);
  EXPECT_EQ(percentile(values, 90), 9);
  EXPECT_EQ(percentile(values, 99), 10);
  EXPECT_EQ(percentile(values, 1), 1);
}

}  // namespace
}  // namespace hearth::tools
