// SPDX-License-Identifier: Apache-2.0
#include "memory/string_heap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

namespace hearth::memory {
namespace {

TEST(StringHeapTest, EqualStringsHaveOneHandle) {
  StringScope first;
  StringScope second;
  const StringHandle cat = first.put("cat").value();
  EXPECT_EQ(second.put("cat").value(), cat);
  EXPECT_NE(second.put("dog").value(), cat);
  EXPECT_NE(second.put(std::string_view("cat\0", 4)).value(), cat);
  EXPECT_EQ(first.find(cat), "cat");
  EXPECT_EQ(first.find(cat)->data()[3], '\0');
  EXPECT_EQ(readString(cat).value(), "cat");
}

TEST(StringHeapTest, ZeroIsTheEmptyString) {
  StringScope scope;
  EXPECT_EQ(scope.put("").value(), 0u);
  EXPECT_EQ(scope.find(0), "");
  EXPECT_EQ(readString(0).value(), "");
}

TEST(StringHeapTest, AStringLivesAsLongAsOneOfItsScopes) {
  StringHandle handle = 0;
  StringScope keeping;
  {
    StringScope scope;
    handle = scope.put("kept for a while").value();
    const StringHandle dropped = scope.put("dropped").value();
    EXPECT_EQ(keeping.find(handle), std::nullopt);
    ASSERT_TRUE(keeping.keep(std::array{handle, StringHandle{0}, handle}));
    EXPECT_NE(handle, dropped);
  }
  EXPECT_EQ(keeping.find(handle), "kept for a while");
  // A handle is never given again.
  StringScope later;
  EXPECT_EQ(later.find(handle), std::nullopt);
  const StringHandle again = later.put("dropped").value();
  EXPECT_GT(again, handle + 1);
  EXPECT_EQ(readString(handle + 1).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(later.keep(std::array{handle + 1}).error().code(), ErrorCode::kNotFound);
}

TEST(StringHeapTest, AnyValueMayBeAskedFor) {
  EXPECT_EQ(readString(~StringHandle{0}).error().code(), ErrorCode::kNotFound);
}

TEST(StringHeapTest, PutsIntoTheScopeOfTheThread) {
  EXPECT_EQ(putString("lost").error().code(), ErrorCode::kBadState);
  StringScope outer;
  const StringScopeOfThread ofOuter(&outer);
  const StringHandle one = putString("one").value();
  {
    StringScope inner;
    const StringScopeOfThread ofInner(&inner);
    const StringHandle two = putString("two").value();
    EXPECT_EQ(inner.find(two), "two");
    EXPECT_EQ(outer.find(two), std::nullopt);
  }
  EXPECT_EQ(outer.find(one), "one");
  EXPECT_EQ(outer.find(putString("three").value()), "three");
}

TEST(StringHeapTest, ThreadsShareIt) {
  std::vector<std::thread> threads;
  std::array<bool, 4> areRight{};
  for (size_t i = 0; i < areRight.size(); ++i)
    threads.emplace_back([&, i] {
      areRight[i] = true;
      for (int round = 0; round < 500; ++round) {
        StringScope scope;
        const std::string text = "shared " + std::to_string(round % 7);
        const StringHandle handle = scope.put(text).value();
        areRight[i] = areRight[i] && scope.find(handle) == text && *readString(handle) == text;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(areRight, testing::Each(true));
}

}  // namespace
}  // namespace hearth::memory
