// SPDX-License-Identifier: Apache-2.0
#include "ipc/expected_time.h"

#include <gtest/gtest.h>

namespace hearth::ipc {
namespace {

using std::chrono::microseconds;

void addAll(ExpectedTime* expected, std::initializer_list<int> times) {
  for (const int time : times) expected->add(microseconds(time));
}

TEST(ExpectedTimeTest, NothingIsExpectedAfterFewComputations) {
  ExpectedTime expected;
  for (size_t i = 0; i < ExpectedTime::kKnown; ++i) {
    EXPECT_FALSE(expected.next()) << i;
    expected.add(microseconds(100));
  }
  EXPECT_EQ(expected.next(), microseconds(100));
}

TEST(ExpectedTimeTest, OneOfTheShorterTimesIsExpected) {
  ExpectedTime expected;
  addAll(&expected, {107, 101, 102, 106, 100, 105, 103, 104});
  EXPECT_EQ(expected.next(), microseconds(102));
}

TEST(ExpectedTimeTest, TwoInterruptionsDoNotCount) {
  ExpectedTime expected;
  addAll(&expected, {100, 100, 5000, 100, 100, 100, 900, 100});
  EXPECT_EQ(expected.next(), microseconds(100));
  expected.add(microseconds(100));
  expected.add(microseconds(100));
  // The third takes the place of 5000.
  expected.add(microseconds(700));
  EXPECT_EQ(expected.next(), microseconds(100));
  expected.add(microseconds(700));
  EXPECT_FALSE(expected.next());
}

TEST(ExpectedTimeTest, TimesThatDifferByATenthAreUsual) {
  ExpectedTime expected;
  addAll(&expected, {2000, 2190, 2100, 2000, 2190, 2100, 2000, 2190});
  EXPECT_EQ(expected.next(), microseconds(2000));
  ExpectedTime other;
  addAll(&other, {2000, 2210, 2100, 2000, 2210, 2100, 2000, 2210});
  EXPECT_FALSE(other.next());
}

TEST(ExpectedTimeTest, OldTimesAreForgotten) {
  ExpectedTime expected;
  addAll(&expected, {100, 100, 100, 100, 100, 100, 100, 100});
  addAll(&expected, {300, 300, 300, 300, 300, 300, 300, 300});
  EXPECT_EQ(expected.next(), microseconds(300));
}

}  // namespace
}  // namespace hearth::ipc
