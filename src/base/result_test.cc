// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace hearth {
namespace {

Result<int> parsePositive(int value) {
  if (value <= 0) return fail(ErrorCode::kBadData, "The value {} is not positive.", value);
  return value;
}

Result<int> doubled(int value) {
  HEARTH_ASSIGN(int parsed, parsePositive(value));
  return 2 * parsed;
}

Status checked(int value) {
  HEARTH_TRY_CONTEXT(parsePositive(value), "while checking {}", value);
  return {};
}

TEST(Result, AssignPassesValueAndError) {
  EXPECT_EQ(doubled(4).value(), 8);
  ASSERT_FALSE(doubled(-1));
  EXPECT_EQ(doubled(-1).error().code(), ErrorCode::kBadData);
}

TEST(Result, ContextIsAppendedInnermostFirst) {
  auto status = checked(0);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().toString(), "The value 0 is not positive. (while checking 0)");
}

TEST(Result, ErrnoKeepsItsKind) {
  EXPECT_EQ(base::errnoError(ENOENT, "Opening x").code(), ErrorCode::kNotFound);
  EXPECT_EQ(base::errnoError(EIO, "Opening x").code(), ErrorCode::kIo);
}

}  // namespace
}  // namespace hearth
